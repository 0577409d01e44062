import { mlx } from "./library.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

/** [..., M, K] x [..., K, N] -> [..., M, N]; leading axes broadcast. */
export function matmul(a: Tensor, b: Tensor): Tensor {
  return result("matmul", mlx.mlx_matmul(slot, pointer(a), pointer(b), stream()));
}

/** alpha * (a x b) + beta * c: a matrix product and its bias in one operation. */
export function addmm(c: Tensor, a: Tensor, b: Tensor, alpha = 1, beta = 1): Tensor {
  return result(
    "addmm",
    mlx.mlx_addmm(slot, pointer(c), pointer(a), pointer(b), alpha, beta, stream()),
  );
}
