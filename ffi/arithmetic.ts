import { mlx } from "./library.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

// Element-wise operations. Shapes broadcast as in NumPy; the result has the wider type of its operands.

export function add(a: Tensor, b: Tensor): Tensor {
  return result("add", mlx.mlx_add(slot, pointer(a), pointer(b), stream()));
}

export function subtract(a: Tensor, b: Tensor): Tensor {
  return result("subtract", mlx.mlx_subtract(slot, pointer(a), pointer(b), stream()));
}

export function multiply(a: Tensor, b: Tensor): Tensor {
  return result("multiply", mlx.mlx_multiply(slot, pointer(a), pointer(b), stream()));
}

/** a / b; integers are divided as floats. */
export function divide(a: Tensor, b: Tensor): Tensor {
  return result("divide", mlx.mlx_divide(slot, pointer(a), pointer(b), stream()));
}

export function maximum(a: Tensor, b: Tensor): Tensor {
  return result("maximum", mlx.mlx_maximum(slot, pointer(a), pointer(b), stream()));
}

export function abs(a: Tensor): Tensor {
  return result("abs", mlx.mlx_abs(slot, pointer(a), stream()));
}

export function exp(a: Tensor): Tensor {
  return result("exp", mlx.mlx_exp(slot, pointer(a), stream()));
}

export function sqrt(a: Tensor): Tensor {
  return result("sqrt", mlx.mlx_sqrt(slot, pointer(a), stream()));
}

export function square(a: Tensor): Tensor {
  return result("square", mlx.mlx_square(slot, pointer(a), stream()));
}

/** The error function. */
export function erf(a: Tensor): Tensor {
  return result("erf", mlx.mlx_erf(slot, pointer(a), stream()));
}

export function tanh(a: Tensor): Tensor {
  return result("tanh", mlx.mlx_tanh(slot, pointer(a), stream()));
}

/** 1 / (1 + exp(-a)). */
export function sigmoid(a: Tensor): Tensor {
  return result("sigmoid", mlx.mlx_sigmoid(slot, pointer(a), stream()));
}

export function sin(a: Tensor): Tensor {
  return result("sin", mlx.mlx_sin(slot, pointer(a), stream()));
}

export function cos(a: Tensor): Tensor {
  return result("cos", mlx.mlx_cos(slot, pointer(a), stream()));
}
