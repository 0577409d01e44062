import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import { unpackItems } from "./items.ts";
import type { EmbedItem, EmbedJob, EmbedResult } from "./job.ts";
import { estimatedTokens } from "./size-estimate.ts";
import { Task } from "./task.ts";
import { itemField } from "./too-long.ts";

/** What embedding and ranking by vectors need of a model. */
export type VectorModel = Pick<
  EmbeddingModel,
  "dim" | "facts" | "multiVector" | "ownNormalize" | "tokenize" | "finish"
>;

/** The vectors of items, which the kinds of models keep in their own ways. */
export abstract class EmbedTask extends Task<EmbedRow> {
  protected readonly dim: number;
  readonly #items: readonly EmbedItem[];

  constructor(
    id: number,
    abort: SharedArrayBuffer,
    protected readonly job: EmbedJob,
    protected readonly model: VectorModel,
  ) {
    const items = unpackItems(job.items);
    const size = {
      items: items.length,
      estimatedTokens: estimatedTokens(items, model.facts.maxLength),
    };
    super(id, abort, size, job.truncate);
    this.#items = items;
    this.dim = job.dimensions ?? model.dim;
  }

  /** All of them, in the order of the items. */
  protected abstract vectors(): Pick<EmbedResult, "vectors" | "rowsPerItem">;

  result(): EmbedResult {
    const { dim, tokens, truncated } = this;
    return { kind: "embed", ...this.vectors(), dim, tokens, truncated };
  }

  protected tokenize(item: number): EmbedRow {
    const { promptName, instruction } = this.job;
    return this.model.tokenize(this.#items[item]!, { promptName, instruction });
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
  readonly #all = new Float32Array(this.count * this.dim);

  protected vectors() {
    return { vectors: this.#all };
  }

  protected store(item: number, output: Float32Array): void {
    this.#all.set(this.finished(output), item * this.dim);
  }
}
