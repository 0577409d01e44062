import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import { unpackItems } from "./items.ts";
import type { EmbedItem, EmbedJob, EmbedResult } from "./job.ts";
import { estimatedTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField, tooLong } from "./too-long.ts";

/** What embedding and ranking by vectors need of a model. */
export type VectorModel = Pick<
  EmbeddingModel,
  "dim" | "maxLength" | "multiVector" | "ownNormalize" | "tokenize" | "finish"
>;

/** The vectors of items, which the kinds of models keep in their own ways. */
export abstract class EmbedTask extends Task<EmbedRow> {
  protected readonly dim: number;
  private readonly items: readonly EmbedItem[];
  private readonly tokens: Int32Array<ArrayBuffer>;
  private truncated = 0;

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    protected readonly job: EmbedJob,
    protected readonly model: VectorModel,
  ) {
    const items = unpackItems(job.items);
    const size = {
      items: items.length,
      estimatedTokens: estimatedTokens(items, model.maxLength),
    };
    super(id, abort, size, !job.truncate);
    this.items = items;
    this.dim = job.dimensions ?? model.dim;
    this.tokens = new Int32Array(items.length);
  }

  /** All of them, in the order of the items. */
  protected abstract vectors(): Pick<EmbedResult, "vectors" | "rowsPerItem">;

  result(): EmbedResult {
    const { dim, tokens, truncated } = this;
    return { kind: "embed", ...this.vectors(), dim, tokens, truncated };
  }

  protected tokenize(item: number): EmbedRow {
    const { promptName, instruction, truncate } = this.job;
    const row = this.model.tokenize(this.items[item]!, { promptName, instruction });
    if (row.truncated && !truncate) throw tooLong(this.fieldOf(item), row.limit);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.tokens;
    return row;
  }

  protected fieldOf(item: number): string {
    return itemField(this.job.field, item);
  }

  /** `output`: vectors as the module chain leaves them before normalization. */
  protected finished(output: Float32Array): Float32Array<ArrayBuffer> {
    const { dimensions, normalize } = this.job;
    return this.model.finish(output, { dimensions, normalize });
  }
}

/** One vector per item. */
export class SingleVectorTask extends EmbedTask {
  private readonly all = new Float32Array(this.count * this.dim);

  protected vectors() {
    return { vectors: this.all };
  }

  protected store(item: number, output: Float32Array): void {
    this.all.set(this.finished(output), item * this.dim);
  }
}
