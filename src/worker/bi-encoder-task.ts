import type { EmbedRow } from "../pipeline/embedder.ts";
import type { VectorModel } from "./embed-task.ts";
import { textsOf } from "./items.ts";
import type { RerankJob, RerankResult } from "./job.ts";
import { estimatedTextTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField, tooLong } from "./too-long.ts";

const QUERY = 0;

/**
 * Ranks with an embedder: the score of a document is the cosine of its vector and the query's. Item 0 is the query,
 * the documents follow; each side is read with the checkpoint's own prompt for it.
 */
export class BiEncoderTask extends Task<EmbedRow> {
  private readonly texts: readonly string[];
  private readonly vectors: (Float32Array | undefined)[];
  private readonly tokens: Int32Array<ArrayBuffer>;
  private truncated = 0;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    private readonly job: RerankJob,
    private readonly model: VectorModel,
  ) {
    const texts = [job.query, ...textsOf(job.items)];
    const estimatedTokens = estimatedTextTokens(texts, model.maxLength);
    super(id, abort, { items: texts.length, estimatedTokens }, !job.truncate);
    this.texts = texts;
    this.vectors = new Array(texts.length);
    this.tokens = new Int32Array(texts.length);
  }

  result(): RerankResult {
    const [query, ...documents] = this.vectors;
    const scores = Float32Array.from(documents, (document) => cosine(query, document));
    const tokens = this.tokens.slice(1);
    tokens[0] = tokens[0]! + this.tokens[QUERY]!;
    return { kind: "rerank", scores, rawScores: scores.slice(), tokens, truncated: this.truncated };
  }

  protected tokenize(item: number): EmbedRow {
    const { instruction, truncate } = this.job;
    const choice =
      item === QUERY ? { promptName: "query", instruction } : { promptName: "document" };
    const row = this.model.tokenize({ text: this.texts[item]! }, choice);
    if (row.truncated && !truncate) throw tooLong(this.fieldOf(item), this.model.maxLength);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.ids.length;
    return row;
  }

  protected fieldOf(item: number): string {
    return item === QUERY ? "query" : itemField(this.job.field, item - 1);
  }

  protected store(item: number, output: Float32Array): void {
    this.vectors[item] = output.slice();
  }
}

/** Accumulated in f64. A zero vector points nowhere: its cosine counts as 0. */
function cosine(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (!a || !b) throw new Error("a vector is missing");
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    aa += a[i]! * a[i]!;
    bb += b[i]! * b[i]!;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}
