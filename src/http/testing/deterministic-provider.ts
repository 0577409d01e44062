import { INFO } from "../../dialects/testing/context.ts";
import type { ModelKind, Provider, ProviderState } from "../../serving/provider.ts";
import { Failure } from "../../worker/failure.ts";
import { textsOf, unpackItems } from "../../worker/items.ts";
import type {
  EmbedItem,
  EmbedJob,
  EmbedResult,
  Job,
  ModelInfo,
  RerankJob,
  RerankResult,
  Result,
  ResultOf,
} from "../../worker/job.ts";

/** The words of a text, or the ids as they are, cut to the model's limit. */
function tokenCount(item: EmbedItem): number {
  return "text" in item ? item.text.split(" ").length + 2 : item.ids.length;
}

/**
 * A provider without a model: the vector of an item, or the score of a pair, is a plain function of its text or
 * ids, so that tests of the HTTP side know what to expect. It keeps the jobs it was given.
 */
export class DeterministicProvider implements Provider {
  readonly id: string;
  readonly names: readonly string[];
  readonly kind: ModelKind;
  readonly created = 1_700_000_000;
  readonly jobs: Job[] = [];
  state: ProviderState = "ready";
  waiting = 0;
  readonly queueDepth = 8;
  /** Set to make every job fail. */
  failure: Failure | undefined;
  /** Set to make jobs wait for it. */
  gate: Promise<void> | undefined;
  /** Rows per item above 1 make it a multi-vector model. */
  rows = 1;
  /** Set to spoil the score of the last document. */
  brokenScore: number | undefined;
  aborted = 0;

  /** The embedder `tiny` or the reranker `judge`. */
  constructor(readonly info: ModelInfo = INFO) {
    this.kind = info.kind;
    this.id = info.kind === "embedding" ? "tiny" : "judge";
    const alias = info.kind === "embedding" ? "text-embedding-3-small" : "rerank-v3.5";
    this.names = [this.id, `acme/${this.id}`, alias, `/models/${this.id}`];
  }

  async submit<J extends Job>(job: J, signal: AbortSignal): Promise<ResultOf<J>>;
  async submit(job: Job, signal: AbortSignal): Promise<Result> {
    this.jobs.push(job);
    if (this.failure) throw this.failure;
    if (this.gate) await this.#untilOpen(this.gate, signal);
    switch (job.kind) {
      case "embed":
        return this.#embed(job);
      case "rerank":
        return this.#rerank(job);
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
    const dim = job.dimensions ?? INFO.dim;
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
    this.#checkLength(job, counts);
    const rowsPerItem = this.rows > 1 ? new Int32Array(items.length).fill(this.rows) : undefined;
    return { kind: "embed", vectors, dim, rowsPerItem, tokens, truncated };
  }

  #rerank(job: RerankJob): RerankResult {
    const documents = textsOf(job.items);
    const counts = documents.map((text) => `${job.query} ${text}`.split(" ").length + 3);
    this.#checkLength(job, counts);
    const scores = Float32Array.from(documents, (text) => expectedScore(job.query, text));
    if (this.brokenScore !== undefined) scores[scores.length - 1] = this.brokenScore;
    return {
      kind: "rerank",
      scores,
      rawScores: scores.map((score) => 10 * score),
      tokens: Int32Array.from(counts, (count) => Math.min(count, this.info.maxLength)),
      truncated: counts.filter((count) => count > this.info.maxLength).length,
    };
  }

  #checkLength({ truncate, field }: EmbedJob | RerankJob, counts: readonly number[]): void {
    const tooLong = counts.findIndex((count) => count > this.info.maxLength);
    if (truncate || tooLong < 0) return;
    const at = field.isList ? `${field.name}[${tooLong}]` : field.name;
    throw new Failure("invalid", `${at} is too large: it exceeds maximum context length`, at);
  }
}

/** The score of a pair, below 1; documents that are equal score equal. */
export function expectedScore(query: string, document: string): number {
  return Math.fround(Number(Bun.hash.crc32(`${query}\n${document}`) >>> 8) / 2 ** 24);
}

/** What a provider of these settings answers for one text. */
export function expectedVector(text: string, dim = INFO.dim): number[] {
  const seed = Number(Bun.hash.crc32(text));
  return Array.from({ length: dim }, (_, k) => Math.fround(Math.sin(seed + k + 1)));
}
