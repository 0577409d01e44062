import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import { unpackItems } from "./items.ts";
import type { EmbedItem, EmbedJob, EmbedResult } from "./job.ts";
import { estimatedTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField, tooLong } from "./too-long.ts";

/** What embedding and ranking by vectors need of a model. */
export type VectorModel = Pick<EmbeddingModel, "dim" | "maxLength" | "tokenize" | "finish">;

/** One vector per item. */
export class EmbedTask extends Task<EmbedRow> {
  private readonly items: readonly EmbedItem[];
  private readonly vectors: Float32Array<ArrayBuffer>;
  private readonly tokens: Int32Array<ArrayBuffer>;
  private readonly dim: number;
  private truncated = 0;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    private readonly job: EmbedJob,
    private readonly model: VectorModel,
  ) {
    const items = unpackItems(job.items);
    const size = {
      items: items.length,
      estimatedTokens: estimatedTokens(items, model.maxLength),
    };
    super(id, abort, size, !job.truncate);
    this.items = items;
    this.dim = job.dimensions ?? model.dim;
    this.vectors = new Float32Array(items.length * this.dim);
    this.tokens = new Int32Array(items.length);
  }

  result(): EmbedResult {
    const { vectors, dim, tokens, truncated } = this;
    return { kind: "embed", vectors, dim, tokens, truncated };
  }

  protected tokenize(item: number): EmbedRow {
    const { promptName, instruction, truncate } = this.job;
    const row = this.model.tokenize(this.items[item]!, { promptName, instruction });
    if (row.truncated && !truncate) throw tooLong(this.fieldOf(item), this.model.maxLength);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.ids.length;
    return row;
  }

  protected fieldOf(item: number): string {
    return itemField(this.job.field, item);
  }

  /** `output`: the vector as the module chain leaves it before normalization. */
  protected store(item: number, output: Float32Array): void {
    const { dimensions, normalize } = this.job;
    this.vectors.set(this.model.finish(output, { dimensions, normalize }), item * this.dim);
  }
}
