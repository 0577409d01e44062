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

/** LayerNorm with `<name>.weight` [width] alone. */
export function unbiasedLayerNorm(weights: Weights, name: string, width: number, eps: number) {
  const weight = weights.take(`${name}.weight`, [width]);
  return (x: Tensor): Tensor => mx.layerNorm(x, weight, null, eps);
}

/** RMSNorm (Zhang and Sennrich 2019) with `<name>.weight` [width]. */
export function rmsNorm(weights: Weights, name: string, width: number, eps: number): Norm {
  const weight = weights.take(`${name}.weight`, [width]);
  return (x) => mx.rmsNorm(x, weight, eps);
}

/** RMSNorm of each head alone, all by the same `<name>.weight` [headDim]: [N, heads * headDim] -> the same. */
export function headRmsNorm(weights: Weights, name: string, headDim: number, eps: number): Norm {
  const norm = rmsNorm(weights, name, headDim, eps);
  // [N, heads * headDim] -> [N * heads, headDim] and back
  return (x) => mx.reshape(norm(mx.reshape(x, [-1, headDim])), x.shape);
}
