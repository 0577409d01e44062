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
  const weight = weights.take(`${name}.weight`, [width]);
  const kernels = kernelsFor(weights);
  return kernels ? (x) => kernels.rmsNorm(x, weight, eps) : (x) => mx.rmsNorm(x, weight, eps);
}

/** RMSNorm of each head alone, all by the same `<name>.weight` [headDim]: [N, heads * headDim] -> the same. */
export function headRmsNorm(weights: Weights, name: string, headDim: number, eps: number): Norm {
  const norm = rmsNorm(weights, name, headDim, eps);
  // [N, heads * headDim] -> [N * heads, headDim] and back
  return (x) => mx.reshape(norm(mx.reshape(x, [-1, headDim])), x.shape);
}
