import { c } from "../signature.ts";

/** mlx/c/vector.h */
export const vector = {
  mlx_vector_array_new: c("mlx_vector_array"),
  mlx_vector_array_free: c("int", "mlx_vector_array"),
  mlx_vector_array_append_value: c("int", "mlx_vector_array", "mlx_array"),
  mlx_vector_array_size: c("size_t", "mlx_vector_array"),
  mlx_vector_array_get: c("int", "mlx_array*", "mlx_vector_array", "size_t"),
};
