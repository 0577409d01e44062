/** A model in a worker of its own, for the commands that run without a server. */
import { type Checkpoint, readCheckpoint } from "../checkpoint/checkpoint.ts";
import { classifierLabels } from "../checkpoint/classifier-labels.ts";
import { kindOf } from "../checkpoint/kind.ts";
import type { ParseContext } from "../dialects/dialect.ts";
import { DEFAULT_MODEL } from "../hub/resolve.ts";
import type { Environment } from "../native/environment.ts";
import { colourWanted, type Logger } from "../serving/log.ts";
import type { Provider } from "../serving/provider.ts";
import { RankingEmbedder } from "../serving/ranking-embedder.ts";
import type { EmbedJob, RerankJob, ResultOf } from "../worker/job.ts";
import type { WorkerSettings } from "../worker/protocol.ts";
import { TimeAccount } from "../worker/time-account.ts";
import { hostOf } from "./model-host.ts";
import { type HubFlags, namedModel } from "./named-model.ts";
import { profileReport } from "./profile-report.ts";
import { isOn } from "./variables.ts";

interface LocalModelFlags extends HubFlags {
  readonly model?: string | undefined;
  readonly device: WorkerSettings["device"];
  readonly cpuDequantize: WorkerSettings["cpuDequantize"];
  readonly cpuPrecision: WorkerSettings["cpuPrecision"];
  readonly memoryLimit?: number | undefined;
  readonly cacheLimit: number;
}

/** Every failure reaches the command as a rejection; a log would only repeat it. */
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export class LocalModel implements Disposable {
  readonly #provider: Provider;
  readonly #close: () => void;

  private constructor(
    provider: Provider,
    close: () => void,
    /** For the dialects that turn flags into jobs. */
    readonly context: ParseContext,
  ) {
    this.#provider = provider;
    this.#close = close;
  }

  /**
   * Loads the model for its use: an embedder, or anything that can rank.
   * @throws Error one line, when it is missing, of the wrong kind, or can't be loaded
   */
  static async load(
    use: "embed" | "rank",
    flags: LocalModelFlags,
    env: Environment,
    own: Pick<WorkerSettings, "pooling"> = {},
  ): Promise<LocalModel> {
    const { directory, base, id, name } = await namedModel(
      flags.model ?? DEFAULT_MODEL,
      flags,
      env,
    );
    const checkpoint = readCheckpoint(directory, base);
    const kind = kindOf(checkpoint) === "embedding" ? "embedding" : "reranker";
    if (use === "embed" && kind === "reranker") throw new Error(notAnEmbedder(name, checkpoint));
    const { device, cpuDequantize, cpuPrecision } = flags;
    const { memoryLimit: memoryLimitBytes, cacheLimit: cacheLimitBytes } = flags;
    const profile = isOn("MLXCEL_PROFILE", env) ? new TimeAccount() : undefined;
    const host = hostOf(
      {
        id,
        names: [id, name],
        isDefault: flags.model === undefined,
        queueDepth: 1,
        requestTimeoutMs: Number.POSITIVE_INFINITY,
        worker: {
          ...{ kind, directory, base, device, cpuDequantize, cpuPrecision },
          ...{ memoryLimitBytes, cacheLimitBytes, ...own },
        },
      },
      SILENT,
      profile,
    );
    const close = () => {
      host.close();
      const times = profile?.entries() ?? [];
      if (times.length > 0) {
        process.stderr.write(profileReport(times, colourWanted(process.stderr)));
      }
    };
    try {
      const info = await host.load();
      const provider = use === "rank" && kind === "embedding" ? new RankingEmbedder(host) : host;
      const model = { id, names: host.names, kind: provider.kind, info };
      return new LocalModel(provider, close, { model, truncate: true, rawScores: false });
    } catch (error) {
      close();
      throw error;
    }
  }

  submit<J extends EmbedJob | RerankJob>(job: J): Promise<ResultOf<J>> {
    return this.#provider.submit(job, new AbortController().signal);
  }

  [Symbol.dispose](): void {
    this.#close();
  }
}

function notAnEmbedder(name: string, checkpoint: Checkpoint): string {
  const labels = kindOf(checkpoint) === "reranker" ? classifierLabels(checkpoint) : undefined;
  return labels === undefined || labels === 1
    ? `${name} is not an embedding model; mlxcel rerank runs rerankers`
    : `${name} is a classifier of ${labels} labels, neither an embedding model nor a reranker (of exactly 1); name another with -m`;
}
