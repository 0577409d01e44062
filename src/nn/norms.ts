import * as mx from "../../ffi/index.ts";
import type { NormParameters, Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { kernelsFor } from "./kernels.ts";

/** [N, width] -> [N, width]. */
export type Norm = (x: Tensor) => Tensor;

/** A LayerNorm that other operations can end with. */
export interface LayerNorm extends Norm {
  (x: Tensor): Tensor;
  readonly parameters: NormParameters;
}

/** LayerNorm (Ba et al. 2016) with `<name>.weight` and `<name>.bias`, both [width]. */
export function layerNorm(weights: Weights, name: string, width: number, eps: number): LayerNorm {
  const weight = weights.take(`${name}.weight`, [width]);
  const bias = weights.take(`${name}.bias`, [width]);
  return layerNormOf(weights, { weight, bias, eps });
}

/** LayerNorm with `<name>.weight` [width] alone. */
export function unbiasedLayerNorm(
  weights: Weights,
  name: string,
  width: number,
  eps: number,
): LayerNorm {
  return layerNormOf(weights, { weight: weights.take(`${name}.weight`, [width]), eps });
}

function layerNormOf(weights: Weights, parameters: NormParameters): LayerNorm {
  const { weight, bias = null, eps } = parameters;
  const kernels = kernelsFor(weights);
  const norm = kernels
    ? (x: Tensor) => kernels.layerNorm(x, parameters)
    : (x: Tensor) => mx.layerNorm(x, weight, bias, eps);
  return Object.assign(norm, { parameters });
}

/** RMSNorm (Zhang and Sennrich 2019) with `<name>.weight` [width]. */
export function rmsNorm(weights: Weights, name: string, width: number, eps: number): Norm {
  return rmsNormOf(weights, weights.take(`${name}.weight`, [width]), eps);
}

/** RMSNorm as Gemma 1 to 3 store it: by 1 + `<name>.weight` [width]. */
export function offsetRmsNorm(weights: Weights, name: string, width: number, eps: number): Norm {
  const weight = weights.derive([`${name}.weight`], [width], ([stored]) =>
    // in f32, as 16 bits would lose most of a small weight
    mx.add(mx.astype(stored!, "float32"), mx.scalar(1)),
  );
  const norm = rmsNormOf(weights, weight, eps);
  return (x) => mx.astype(norm(x), x.dtype);
}

/** RMSNorm without a weight. */
export function plainRmsNorm(weights: Weights, width: number, eps: number): Norm {
  const kernels = kernelsFor(weights);
  if (!kernels) return (x) => mx.rmsNorm(x, null, eps);
  const ones = mx.keep(mx.ones([width]));
  return (x) => kernels.rmsNorm(x, ones, eps);
}

function rmsNormOf(weights: Weights, weight: Tensor, eps: number): Norm {
  const kernels = kernelsFor(weights);
  return kernels ? (x) => kernels.rmsNorm(x, weight, eps) : (x) => mx.rmsNorm(x, weight, eps);
}

/** A norm [N, headDim] of each head alone: [N, heads * headDim] -> the same. */
export function perHead(norm: Norm, headDim: number): Norm {
  // [N, heads * headDim] -> [N * heads, headDim] and back
  return (x) => mx.reshape(norm(mx.reshape(x, [-1, headDim])), x.shape);
}
