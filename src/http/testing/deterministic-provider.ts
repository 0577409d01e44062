import { INFO } from "../../dialects/testing/context.ts";
import type { Provider, ProviderState } from "../../serving/provider.ts";
import { Failure } from "../../worker/failure.ts";
import { unpackItems } from "../../worker/items.ts";
import type {
  EmbedItem,
  EmbedJob,
  EmbedResult,
  Job,
  ModelInfo,
  Result,
  ResultOf,
} from "../../worker/job.ts";

/** The words of a text, or the ids as they are, cut to the model's limit. */
function tokenCount(item: EmbedItem): number {
  return "text" in item ? item.text.split(" ").length + 2 : item.ids.length;
}

/**
 * A provider without a model: the vector of an item is a plain function of its text or ids, so that tests of
 * the HTTP side know what to expect. It keeps the jobs it was given.
 */
export class DeterministicProvider implements Provider {
  readonly id = "tiny";
  readonly names = ["tiny", "acme/tiny", "text-embedding-3-small"];
  readonly kind = "embedding";
  readonly created = 1_700_000_000;
  readonly jobs: Job[] = [];
  state: ProviderState = "ready";
  waiting = 0;
  /** Set to make every job fail. */
  failure: Failure | undefined;
  /** Set to make jobs wait for it. */
  gate: Promise<void> | undefined;
  /** Rows per item above 1 make it a multi-vector model. */
  rows = 1;
  aborted = 0;

  constructor(readonly info: ModelInfo = INFO) {}

  async submit<J extends Job>(job: J, signal: AbortSignal): Promise<ResultOf<J>>;
  async submit(job: Job, signal: AbortSignal): Promise<Result> {
    this.jobs.push(job);
    if (this.failure) throw this.failure;
    if (this.gate) await this.#untilOpen(this.gate, signal);
    switch (job.kind) {
      case "embed":
        return this.#embed(job);
      case "tokenize": {
        const words = job.text.split(" ").filter((word) => word !== "");
        const ids = Int32Array.from([
          ...(job.addSpecial ? [101] : []),
          ...words.map((w) => w.length),
        ]);
        const pieces = [...(job.addSpecial ? ["[CLS]"] : []), ...words];
        return { kind: "tokenize", ids, pieces: job.withPieces ? pieces : undefined };
      }
      case "detokenize":
        return { kind: "detokenize", text: Array.from(job.ids, (id) => `w${id}`).join(" ") };
    }
  }

  async #untilOpen(gate: Promise<void>, signal: AbortSignal): Promise<void> {
    this.waiting++;
    const { promise, reject } = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => {
      this.aborted++;
      reject(new Failure("cancelled", "the client went away"));
    });
    try {
      await Promise.race([gate, promise]);
    } finally {
      this.waiting--;
    }
  }

  #embed(job: EmbedJob): EmbedResult {
    const items = unpackItems(job.items);
    const dim = job.dimensions ?? this.info.dim;
    const vectors = new Float32Array(items.length * this.rows * dim);
    items.forEach((item, i) => {
      const seed =
        "text" in item ? Number(Bun.hash.crc32(item.text)) : item.ids.reduce((a, b) => a + b, 0);
      for (let k = 0; k < this.rows * dim; k++) {
        vectors[i * this.rows * dim + k] = Math.sin(seed + k + 1);
      }
    });
    const counts = items.map(tokenCount);
    const tokens = Int32Array.from(counts, (count) => Math.min(count, this.info.maxLength));
    const truncated = counts.filter((count) => count > this.info.maxLength).length;
    const tooLong = counts.findIndex((count) => count > this.info.maxLength);
    if (!job.truncate && tooLong >= 0) {
      const at = job.field.isList ? `${job.field.name}[${tooLong}]` : job.field.name;
      throw new Failure("invalid", `${at} is too large: it exceeds maximum context length`, at);
    }
    const rowsPerItem = this.rows > 1 ? new Int32Array(items.length).fill(this.rows) : undefined;
    return { kind: "embed", vectors, dim, rowsPerItem, tokens, truncated };
  }
}

/** What a provider of these settings answers for one text. */
export function expectedVector(text: string, dim = INFO.dim): number[] {
  const seed = Number(Bun.hash.crc32(text));
  return Array.from({ length: dim }, (_, k) => Math.fround(Math.sin(seed + k + 1)));
}
