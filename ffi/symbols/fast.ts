import { c } from "../signature.ts";

const ropeBeforeOffset = [
  "mlx_array*",
  "mlx_array",
  "int",
  "bool",
  "mlx_optional_float",
  "float",
] as const;

/** mlx/c/fast.h */
export const fast = {
  mlx_fast_layer_norm: c(
    "int",
    "mlx_array*",
    "mlx_array",
    "mlx_array",
    "mlx_array",
    "float",
    "mlx_stream",
  ),
  mlx_fast_rms_norm: c("int", "mlx_array*", "mlx_array", "mlx_array", "float", "mlx_stream"),
  mlx_fast_rope: c("int", ...ropeBeforeOffset, "int", "mlx_array", "mlx_stream"),
  mlx_fast_rope_dynamic: c("int", ...ropeBeforeOffset, "mlx_array", "mlx_array", "mlx_stream"),
  mlx_fast_scaled_dot_product_attention: c(
    "int",
    "mlx_array*",
    "mlx_array",
    "mlx_array",
    "mlx_array",
    "float",
    "char*",
    "mlx_array",
    "mlx_array",
    "bool",
    "mlx_stream",
  ),
};
