import type { EmbedRow } from "../pipeline/embedder.ts";
import type { VectorModel } from "./embed-task.ts";
import { textsOf } from "./items.ts";
import type { RerankJob, RerankResult } from "./job.ts";
import { estimatedTextTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField } from "./too-long.ts";

/** The item that is the query. */
export const QUERY = 0;

/**
 * Ranks by what an embedder makes of query and documents apart. Item 0 is the query, the documents follow; each side
 * is read with the checkpoint's own prompt for it.
 */
export abstract class VectorRankingTask extends Task<EmbedRow> {
  readonly #texts: readonly string[];
  readonly #job: RerankJob;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    job: RerankJob,
    protected readonly model: VectorModel,
  ) {
    const texts = [job.query, ...textsOf(job.items)];
    const estimatedTokens = estimatedTextTokens(texts, model.facts.maxLength);
    super(id, abort, { items: texts.length, estimatedTokens }, job.truncate);
    this.#job = job;
    this.#texts = texts;
  }

  /** [documents] each, once all are scored. */
  protected abstract scores(): Pick<RerankResult, "scores" | "rawScores">;

  result(): RerankResult {
    const tokens = this.tokens.slice(1);
    tokens[0] = tokens[0]! + this.tokens[QUERY]!;
    return { kind: "rerank", ...this.scores(), tokens, truncated: this.truncated };
  }

  protected tokenize(item: number): EmbedRow {
    const { instruction } = this.#job;
    const choice =
      item === QUERY ? { promptName: "query", instruction } : { promptName: "document" };
    return this.model.tokenize({ text: this.#texts[item]! }, choice);
  }

  protected fieldOf(item: number): string {
    return item === QUERY ? "query" : itemField(this.#job.field, item - 1);
  }
}
