import { mlx } from "./library.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

// Comparisons give tensors of type bool; shapes broadcast as in NumPy.

export function less(a: Tensor, b: Tensor): Tensor {
  return result("less", mlx.mlx_less(slot, pointer(a), pointer(b), stream()));
}

export function lessEqual(a: Tensor, b: Tensor): Tensor {
  return result("lessEqual", mlx.mlx_less_equal(slot, pointer(a), pointer(b), stream()));
}

export function greaterEqual(a: Tensor, b: Tensor): Tensor {
  return result("greaterEqual", mlx.mlx_greater_equal(slot, pointer(a), pointer(b), stream()));
}

export function logicalAnd(a: Tensor, b: Tensor): Tensor {
  return result("logicalAnd", mlx.mlx_logical_and(slot, pointer(a), pointer(b), stream()));
}

export function logicalOr(a: Tensor, b: Tensor): Tensor {
  return result("logicalOr", mlx.mlx_logical_or(slot, pointer(a), pointer(b), stream()));
}

/** False for NaN and infinities. */
export function isFinite(a: Tensor): Tensor {
  return result("isFinite", mlx.mlx_isfinite(slot, pointer(a), stream()));
}

/** Elements of `a` where the condition is true, else of `b`. */
export function where(condition: Tensor, a: Tensor, b: Tensor): Tensor {
  return result("where", mlx.mlx_where(slot, pointer(condition), pointer(a), pointer(b), stream()));
}
