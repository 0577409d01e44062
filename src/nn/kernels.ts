import * as mx from "../../ffi/index.ts";
import type { Kernels, Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";

/** The CPU kernels for layers with these weights; undefined where mlx's own operations are to be used. */
export function kernelsFor(weights: Weights): Kernels | undefined {
  return weights.computeDtype === "float32" ? mx.kernels() : undefined;
}

/** The CPU kernels for this input; undefined where mlx's own operations are to be used. */
export function kernelsOn(x: Tensor): Kernels | undefined {
  const kernels = mx.kernels();
  return kernels && x.dtype === "float32" ? kernels : undefined;
}
