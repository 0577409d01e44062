import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";

/** [N, in] -> [N, out]. */
export type Linear = (x: Tensor) => Tensor;

export interface LinearShape {
  readonly inputs: number;
  readonly outputs: number;
  readonly bias: boolean;
}

/** x·Wᵀ + b from `<name>.weight` [out, in] and, with `bias`, `<name>.bias` [out]. */
export function linear(weights: Weights, name: string, shape: LinearShape): Linear {
  const { inputs, outputs } = shape;
  const weight = weights.take(`${name}.weight`, [outputs, inputs]);
  // [out, in] -> [in, out], a view
  const transposed = mx.keep(mx.transpose(weight));
  if (!shape.bias) return (x) => mx.matmul(x, transposed);
  const bias = weights.take(`${name}.bias`, [outputs]);
  return (x) => mx.addmm(bias, x, transposed);
}
