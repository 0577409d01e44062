import type { PairRow, PreparedQuery, Reranker } from "../pipeline/reranker.ts";
import { textsOf } from "./items.ts";
import type { RerankJob, RerankResult } from "./job.ts";
import { readField } from "./read-field.ts";
import { estimatedTextTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField } from "./too-long.ts";

/** One logit per (query, document) pair, from a model that reads both together. */
export class PairTask extends Task<PairRow> {
  readonly #documents: readonly string[];
  readonly #logits: Float32Array<ArrayBuffer>;
  #prepared: PreparedQuery | undefined;
  readonly #job: RerankJob;
  readonly #model: Pick<Reranker, "prepare" | "facts">;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    job: RerankJob,
    model: Pick<Reranker, "prepare" | "facts">,
  ) {
    const documents = textsOf(job.items);
    const pairs = documents.map((document) => job.query + document);
    const estimatedTokens = estimatedTextTokens(pairs, model.facts.maxLength);
    super(id, abort, { items: documents.length, estimatedTokens }, job.truncate);
    this.#job = job;
    this.#model = model;
    this.#documents = documents;
    this.#logits = new Float32Array(documents.length);
  }

  result(): RerankResult {
    const { tokens, truncated } = this;
    const logits = this.#logits;
    return { kind: "rerank", scores: logits.map(sigmoid), rawScores: logits, tokens, truncated };
  }

  protected tokenize(item: number): PairRow {
    const { query, instruction } = this.#job;
    this.#prepared ??= readField("query", () => this.#model.prepare(query, instruction));
    return this.#prepared.pair(this.#documents[item]!);
  }

  protected fieldOf(item: number): string {
    return itemField(this.#job.field, item);
  }

  /** `output`: one logit. */
  protected store(item: number, output: Float32Array): void {
    this.#logits[item] = output[0]!;
  }

  protected override release(): void {
    this.#prepared?.release();
  }
}

/** Computed in f64, so that the logits 9 and 10 give different f32 scores whatever type the model computes in. */
function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}
