import * as mx from "../../ffi/index.ts";
import type { Kernels, Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";

/**
 * The CPU kernels for layers with these weights; undefined where mlx's own operations are to be used. `layers` are
 * the names of those whose matrices a kernel would multiply by: none may stay quantised.
 */
export function kernelsFor(weights: Weights, layers: readonly string[] = []): Kernels | undefined {
  if (weights.computeDtype !== "float32") return undefined;
  return layers.some((name) => weights.staysQuantized(`${name}.weight`)) ? undefined : mx.kernels();
}

/** The CPU kernels for this input; undefined where mlx's own operations are to be used. */
export function kernelsOn(x: Tensor): Kernels | undefined {
  const kernels = mx.kernels();
  return kernels && x.dtype === "float32" ? kernels : undefined;
}
