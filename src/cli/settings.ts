import { readFileSync, realpathSync, statSync } from "node:fs";
import { kindOf, readCheckpoint, type CheckpointKind } from "../checkpoint/checkpoint.ts";
import { DEFAULT_MODEL, resolveModel, type ResolvedModel } from "../hub/resolve.ts";
import type { Listen, TlsFiles } from "../http/server.ts";
import type { LogLevel } from "../serving/log.ts";
import type { WorkerSettings } from "../worker/protocol.ts";
import type { Flags } from "./flags.ts";
import type { Environment, ParsedFlags } from "./parse.ts";
import { UsageError } from "./usage-error.ts";

/** Everything the server needs to start, with names resolved and conflicts ruled out. */
export interface ServeSettings {
  readonly embedder: EmbedderSettings;
  readonly listen: Listen;
  /** Paths of PEM files that exist. */
  readonly tls?: TlsFiles | undefined;
  /** Empty: no key is asked for. */
  readonly apiKeys: readonly string[];
  /** undefined: every origin. */
  readonly corsOrigins: readonly string[] | undefined;
  readonly maxBodyBytes: number;
  readonly metrics: boolean;
  /** false: over-long items are refused unless the request says otherwise. */
  readonly truncate: boolean;
  readonly logFormat: "text" | "json";
  readonly logLevel: LogLevel;
  /** Lines for the user to see once, before the banner. */
  readonly notices: readonly string[];
}

export interface EmbedderSettings {
  /** The name that answers carry. */
  readonly id: string;
  /** Every name that requests may use: the id, the path or repository as given, aliases. */
  readonly names: readonly string[];
  /** No flag named a model. */
  readonly isDefault: boolean;
  readonly queueDepth: number;
  readonly requestTimeoutMs: number;
  readonly worker: WorkerSettings;
}

const DEFAULT_QUEUE_DEPTH = 8;
const DEFAULT_TIMEOUT_SECS = 120;

/**
 * @throws UsageError for flags that contradict each other
 * @throws Error for models and files that are missing or of the wrong kind
 */
export function resolveSettings({ flags, ignored }: ParsedFlags, env: Environment): ServeSettings {
  return {
    tls: tlsFiles(flags),
    apiKeys: [...new Set([...(flags.apiKey ?? []), ...keysOfFile(flags.apiKeyFile)])],
    embedder: embedderSettings(flags, env),
    listen: listenAddress(flags),
    corsOrigins: flags.corsOrigins?.includes("*") ? undefined : flags.corsOrigins,
    maxBodyBytes: flags.maxBodySize,
    metrics: flags.metrics,
    truncate: flags.truncate === "on",
    logFormat: flags.logFormat,
    logLevel: flags.logLevel,
    notices:
      ignored.length === 0 ? [] : [`accepted without effect: ${[...new Set(ignored)].join(", ")}`],
  };
}

function embedderSettings(flags: Flags, env: Environment): EmbedderSettings {
  const models = embedders(flags, env);
  const [model] = models;
  return {
    id: model.id,
    names: [...new Set([...models.flatMap(({ id, name }) => [id, name]), ...(flags.alias ?? [])])],
    isDefault: flags.model === undefined && flags.embeddingModel === undefined,
    queueDepth: flags.embeddingQueueDepth || DEFAULT_QUEUE_DEPTH,
    requestTimeoutMs: (flags.embeddingRequestTimeoutSecs || DEFAULT_TIMEOUT_SECS) * 1000,
    worker: {
      directory: model.directory,
      device: flags.device,
      pooling: flags.pooling,
      normalize: flags.embdNormalize,
      maxLength: flags.embeddingMaxLength || undefined,
      batchRows: flags.embeddingBatchSize || undefined,
      batchTokens: flags.batchTokens,
      memoryLimitBytes: flags.memoryLimit,
      cacheLimitBytes: flags.cacheLimit,
    },
  };
}

/** The embedder, once per flag that names it: `-m` and `--embedding-model` may name the same one. */
function embedders(flags: Flags, env: Environment): [ResolvedModel, ...ResolvedModel[]] {
  const resolveEmbedder = (name: string, problem: (kind: CheckpointKind) => string) => {
    const model = resolveModel(name, { modelsDir: flags.modelsDir, env });
    const kind = kindOf(readCheckpoint(model.directory));
    if (kind !== "embedding") throw new Error(problem(kind));
    return model;
  };
  const { model, embeddingModel } = flags;
  const main =
    model === undefined
      ? undefined
      : resolveEmbedder(model, (kind) => mainModelProblem(model, kind));
  const named =
    embeddingModel === undefined
      ? undefined
      : resolveEmbedder(
          embeddingModel,
          (kind) =>
            `--embedding-model ${embeddingModel} is a ${noun(kind)}, not an embedding model`,
        );
  if (main && named && realpathSync(main.directory) !== realpathSync(named.directory)) {
    throw new UsageError(
      `-m ${main.name} and --embedding-model ${named.name} are two embedding models; name one`,
    );
  }
  if (main) return named ? [main, named] : [main];
  return [
    named ??
      resolveEmbedder(
        DEFAULT_MODEL,
        (kind) =>
          `the default model ${DEFAULT_MODEL} is a ${noun(kind)} in this store; name another with -m`,
      ),
  ];
}

function mainModelProblem(name: string, kind: CheckpointKind): string {
  return `${name} is a ${noun(kind)}; this version serves embeddings only: drop -m, or give it an embedding model`;
}

function noun(kind: CheckpointKind): string {
  return kind === "chat" ? "chat model" : kind;
}

function listenAddress({ host, port }: Flags): Listen {
  return host.endsWith(".sock") ? { socketPath: host } : { host, port };
}

function tlsFiles({ sslCertFile, sslKeyFile }: Flags): ServeSettings["tls"] {
  if (sslCertFile === undefined && sslKeyFile === undefined) return undefined;
  if (sslCertFile === undefined)
    throw new UsageError("--ssl-key-file needs --ssl-cert-file beside it");
  if (sslKeyFile === undefined)
    throw new UsageError("--ssl-cert-file needs --ssl-key-file beside it");
  requireFile("--ssl-cert-file", sslCertFile);
  requireFile("--ssl-key-file", sslKeyFile);
  return { certFile: sslCertFile, keyFile: sslKeyFile };
}

/** A file without keys is an error: it would leave the server open although keys were asked for. */
function keysOfFile(path: string | undefined): string[] {
  if (path === undefined) return [];
  requireFile("--api-key-file", path);
  const keys = readFileSync(path, "utf8")
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (keys.length === 0) throw new Error(`--api-key-file ${path} holds no key; write one per line`);
  return keys;
}

function requireFile(flag: string, path: string): void {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new Error(`${flag} ${path}: no such file`);
}
