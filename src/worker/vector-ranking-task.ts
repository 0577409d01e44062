import type { EmbedRow } from "../pipeline/embedder.ts";
import type { VectorModel } from "./embed-task.ts";
import { textsOf } from "./items.ts";
import type { RerankJob, RerankResult } from "./job.ts";
import { estimatedTextTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField, tooLong } from "./too-long.ts";

/** The item that is the query. */
export const QUERY = 0;

/**
 * Ranks by what an embedder makes of query and documents apart. Item 0 is the query, the documents follow; each side
 * is read with the checkpoint's own prompt for it.
 */
export abstract class VectorRankingTask extends Task<EmbedRow> {
  private readonly texts: readonly string[];
  private readonly tokens: Int32Array<ArrayBuffer>;
  private truncated = 0;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    private readonly job: RerankJob,
    protected readonly model: VectorModel,
  ) {
    const texts = [job.query, ...textsOf(job.items)];
    const estimatedTokens = estimatedTextTokens(texts, model.maxLength);
    super(id, abort, { items: texts.length, estimatedTokens }, !job.truncate);
    this.texts = texts;
    this.tokens = new Int32Array(texts.length);
  }

  /** [documents] each, once all are scored. */
  protected abstract scores(): Pick<RerankResult, "scores" | "rawScores">;

  result(): RerankResult {
    const tokens = this.tokens.slice(1);
    tokens[0] = tokens[0]! + this.tokens[QUERY]!;
    return { kind: "rerank", ...this.scores(), tokens, truncated: this.truncated };
  }

  protected tokenize(item: number): EmbedRow {
    const { instruction, truncate } = this.job;
    const choice =
      item === QUERY ? { promptName: "query", instruction } : { promptName: "document" };
    const row = this.model.tokenize({ text: this.texts[item]! }, choice);
    if (row.truncated && !truncate) throw tooLong(this.fieldOf(item), row.limit);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.tokens;
    return row;
  }

  protected fieldOf(item: number): string {
    return item === QUERY ? "query" : itemField(this.job.field, item - 1);
  }
}
