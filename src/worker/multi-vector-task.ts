import type { EmbedRow } from "../pipeline/embedder.ts";
import { EmbedTask } from "./embed-task.ts";
import { Failure } from "./failure.ts";
import { MAX_RESULT_FLOATS } from "./job.ts";

/** Half of what a result may hold: the vectors are joined at the end, and exist twice meanwhile. */
const MAX_FLOATS = MAX_RESULT_FLOATS / 2;

/** Any number of vectors per item. */
export class MultiVectorTask extends EmbedTask {
  readonly #perItem: Float32Array[] = new Array(this.count);
  #promised = 0;

  protected vectors() {
    const rowsPerItem = Int32Array.from(this.#perItem, ({ length }) => length / this.dim);
    const all = new Float32Array(this.#perItem.reduce((sum, { length }) => sum + length, 0));
    let end = 0;
    for (const vectors of this.#perItem) {
      all.set(vectors, end);
      end += vectors.length;
    }
    return { vectors: all, rowsPerItem };
  }

  /** Throws Failure("invalid") where the answer would get too big, which only its tokens tell. */
  protected override tokenize(item: number): EmbedRow {
    const row = super.tokenize(item);
    this.#promised += row.outputs * this.dim;
    if (this.#promised <= MAX_FLOATS) return row;
    const { name } = this.job.field;
    const most = Math.floor(MAX_FLOATS / this.dim);
    throw new Failure(
      "invalid",
      `${name} has more than ${most} tokens, with ${this.dim} numbers for each: send fewer items per request`,
      name,
    );
  }

  protected store(item: number, output: Float32Array): void {
    this.#perItem[item] = this.finished(output);
  }
}
