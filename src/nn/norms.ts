import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";

/** [N, width] -> [N, width]. */
export type Norm = (x: Tensor) => Tensor;

/** LayerNorm (Ba et al. 2016) with `<name>.weight` and `<name>.bias`, both [width]. */
export function layerNorm(weights: Weights, name: string, width: number, eps: number): Norm {
  const weight = weights.take(`${name}.weight`, [width]);
  const bias = weights.take(`${name}.bias`, [width]);
  return (x) => mx.layerNorm(x, weight, bias, eps);
}
