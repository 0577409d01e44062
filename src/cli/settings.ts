import type { Listen, ServerSettings } from "../http/server.ts";
import type { Environment } from "../native/environment.ts";
import type { LogLevel } from "../serving/log.ts";
import type { WorkerSettings } from "../worker/protocol.ts";
import { readFlagFile } from "./flag-file.ts";
import type { Flags } from "./flags.ts";
import { chooseModels, type ChosenModel } from "./model-choice.ts";
import type { ParsedFlags } from "./parse.ts";
import { UsageError } from "./usage-error.ts";
import { isOn } from "./variables.ts";

/** Everything the server needs to start, with names resolved and conflicts ruled out. */
export interface ServeSettings extends ServerSettings {
  readonly embedder?: ModelSettings | undefined;
  readonly reranker?: ModelSettings | undefined;
  /** The embedder answers rerank requests, too. */
  readonly embedderRanks: boolean;
  readonly logFormat: "text" | "json";
  readonly logLevel: LogLevel;
  /** Measure where the time goes, and print it at the end. */
  readonly profile: boolean;
  /** For the log, once: what was asked for in vain. */
  readonly notices: readonly string[];
}

export interface ModelSettings extends Omit<ChosenModel, "directory" | "base"> {
  readonly queueDepth: number;
  readonly requestTimeoutMs: number;
  readonly worker: WorkerSettings;
}

const DEFAULT_QUEUE_DEPTH = 8;
const DEFAULT_TIMEOUT_SECS = 120;

/**
 * Models that are not here yet are downloaded.
 *
 * @throws UsageError for flags that contradict each other
 * @throws Error for models and files that are missing or of the wrong kind
 */
export async function resolveSettings(
  { flags, ignored }: ParsedFlags,
  env: Environment,
): Promise<ServeSettings> {
  const tls = tlsOf(flags);
  const apiKeys = [...new Set([...(flags.apiKey ?? []), ...keysOfFile(flags.apiKeyFile)])];
  const { embedder, reranker, embedderRanks, notices } = await chooseModels(flags, env);
  return {
    tls,
    apiKeys,
    embedder: embedder && modelSettings(embedder, flags, embedderWorker(flags)),
    reranker: reranker && modelSettings(reranker, flags, rerankerWorker(flags, !embedder)),
    embedderRanks,
    rawScores: flags.rerankScores === "raw",
    listen: listenAddress(flags),
    corsOrigins: flags.corsOrigins?.includes("*") ? undefined : flags.corsOrigins,
    maxBodyBytes: flags.maxBodySize,
    maxItems: flags.maxInputs || Number.POSITIVE_INFINITY,
    metrics: flags.metrics,
    truncate: flags.truncate === "on",
    logFormat: flags.logFormat,
    logLevel: flags.logLevel,
    profile: isOn("MLXCEL_PROFILE", env),
    notices: [
      ...(ignored.length === 0
        ? []
        : [`accepted without effect: ${[...new Set(ignored)].join(", ")}`]),
      ...notices,
    ],
  };
}

/** How one model is run, as far as that depends on what it is for. */
type OwnSettings = Pick<
  WorkerSettings,
  "kind" | "pooling" | "normalize" | "maxLength" | "batchRows"
>;

function embedderWorker(flags: Flags): OwnSettings {
  return {
    kind: "embedding",
    pooling: flags.pooling === "rank" ? undefined : flags.pooling,
    normalize: flags.embdNormalize,
    maxLength: flags.embeddingMaxLength || undefined,
    batchRows: flags.embeddingBatchSize || undefined,
  };
}

/** --embedding-max-length, or -c, is for the embedder where there is one. */
function rerankerWorker(flags: Flags, isAlone: boolean): OwnSettings {
  return {
    kind: "reranker",
    maxLength: (isAlone && flags.embeddingMaxLength) || undefined,
    batchRows: flags.rerankBatchSize || undefined,
  };
}

function modelSettings(
  { directory, base, id, names, isDefault }: ChosenModel,
  flags: Flags,
  own: OwnSettings,
): ModelSettings {
  return {
    id,
    names,
    isDefault,
    queueDepth: flags.embeddingQueueDepth || DEFAULT_QUEUE_DEPTH,
    requestTimeoutMs: (flags.embeddingRequestTimeoutSecs || DEFAULT_TIMEOUT_SECS) * 1000,
    worker: {
      ...own,
      directory,
      base,
      device: flags.device,
      cpuDequantize: flags.cpuDequantize,
      cpuPrecision: flags.cpuPrecision,
      batchTokens: flags.batchTokens,
      requestTokens: flags.maxTokensPerRequest || undefined,
      memoryLimitBytes: flags.memoryLimit,
      cacheLimitBytes: flags.cacheLimit,
    },
  };
}

function listenAddress({ host, port }: Flags): Listen {
  return host.endsWith(".sock") ? { socketPath: host } : { host, port };
}

function tlsOf({ sslCertFile, sslKeyFile }: Flags): ServeSettings["tls"] {
  if (sslCertFile === undefined && sslKeyFile === undefined) return undefined;
  if (sslCertFile === undefined)
    throw new UsageError("--ssl-key-file needs --ssl-cert-file beside it");
  if (sslKeyFile === undefined)
    throw new UsageError("--ssl-cert-file needs --ssl-key-file beside it");
  const cert = readFlagFile("--ssl-cert-file", sslCertFile);
  const key = readFlagFile("--ssl-key-file", sslKeyFile);
  if (ENCRYPTED_KEY.test(key)) {
    throw new UsageError(
      `--ssl-key-file ${sslKeyFile} is encrypted, and nothing here asks for a passphrase: ` +
        `decrypt it with openssl pkey -in ${sslKeyFile} -out key.pem`,
    );
  }
  return { cert, key, certFile: sslCertFile, keyFile: sslKeyFile };
}

/** PKCS #8, and the older form of OpenSSL. */
const ENCRYPTED_KEY = /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/** A file without keys is an error: it would leave the server open although keys were asked for. */
function keysOfFile(path: string | undefined): string[] {
  if (path === undefined) return [];
  const keys = readFlagFile("--api-key-file", path)
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (keys.length === 0) {
    throw new UsageError(`--api-key-file ${path} holds no key; write one per line`);
  }
  return keys;
}
