import { check } from "./error.ts";
import { mlx } from "./library.ts";
import type { Tensor } from "./tensor.ts";
import { withVector } from "./vector.ts";

/** Computes the tensors and waits for them. */
export function evaluate(...tensors: readonly Tensor[]): void {
  withVector(tensors, (vector) => check("evaluate", mlx.mlx_eval(vector)));
}

/** Starts computing the tensors and returns at once; reading one waits for it. */
export function asyncEvaluate(...tensors: readonly Tensor[]): void {
  withVector(tensors, (vector) => check("asyncEvaluate", mlx.mlx_async_eval(vector)));
}
