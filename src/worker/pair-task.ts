import type { PairRow, PreparedQuery, Reranker } from "../pipeline/reranker.ts";
import { textsOf } from "./items.ts";
import type { RerankJob, RerankResult } from "./job.ts";
import { estimatedTextTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField, tooLong } from "./too-long.ts";

/** One logit per (query, document) pair, from a model that reads both together. */
export class PairTask extends Task<PairRow> {
  private readonly documents: readonly string[];
  private readonly logits: Float32Array<ArrayBuffer>;
  private readonly tokens: Int32Array<ArrayBuffer>;
  private prepared: PreparedQuery | undefined;
  private truncated = 0;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    private readonly job: RerankJob,
    private readonly model: Pick<Reranker, "prepare" | "maxLength">,
  ) {
    const documents = textsOf(job.items);
    const pairs = documents.map((document) => job.query + document);
    const estimatedTokens = estimatedTextTokens(pairs, model.maxLength);
    super(id, abort, { items: documents.length, estimatedTokens }, !job.truncate);
    this.documents = documents;
    this.logits = new Float32Array(documents.length);
    this.tokens = new Int32Array(documents.length);
  }

  result(): RerankResult {
    const { logits, tokens, truncated } = this;
    return { kind: "rerank", scores: logits.map(sigmoid), rawScores: logits, tokens, truncated };
  }

  protected tokenize(item: number): PairRow {
    const { query, instruction, truncate } = this.job;
    this.prepared ??= this.model.prepare(query, instruction);
    const row = this.prepared.pair(this.documents[item]!);
    if (row.truncated && !truncate) throw tooLong(this.fieldOf(item), this.model.maxLength);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.tokens;
    return row;
  }

  protected fieldOf(item: number): string {
    return itemField(this.job.field, item);
  }

  /** `output`: one logit. */
  protected store(item: number, output: Float32Array): void {
    this.logits[item] = output[0]!;
  }

  protected override release(): void {
    this.prepared?.release();
  }
}

/** Computed in f64, so that the logits 9 and 10 give different f32 scores whatever type the model computes in. */
function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}
