import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";

/** [N] int32 indices -> [N, width]. Indices must lie within the table: mlx does not check them. */
export type Embedding = (indices: Tensor) => Tensor;

/** A look-up in `<name>.weight` [rows, width]. */
export function embedding(weights: Weights, name: string, rows: number, width: number): Embedding {
  const table = weights.take(`${name}.weight`, [rows, width]);
  return (indices) => mx.take(table, indices, 0);
}
