import { ptr } from "bun:ffi";
import { MlxError } from "./error.ts";

const MAX_AXES = 32;

/**
 * A list of axes or sizes in stable memory, to be passed as `const int*` and its length. mlx-c copies it during
 * the call, so one buffer per argument position serves all operations of a thread.
 */
class Sizes {
  readonly #ints = new Int32Array(new ArrayBuffer(4 * MAX_AXES));
  readonly address: number = ptr(this.#ints);

  /** Writes the list and returns its length. */
  set(operation: string, values: readonly number[]): number {
    if (values.length > MAX_AXES) {
      throw new MlxError(operation, `${values.length} axes are more than ${MAX_AXES}`);
    }
    for (let i = 0; i < values.length; i++) this.#ints[i] = values[i]!;
    return values.length;
  }
}

export const first = new Sizes();
export const second = new Sizes();
export const third = new Sizes();

/** Number of elements of a shape. */
export function elements(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 1);
}
