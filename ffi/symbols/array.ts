import { c } from "../signature.ts";

/** mlx/c/array.h */
export const array = {
  mlx_array_free: c("int", "mlx_array"),
  mlx_array_new_bool: c("mlx_array", "bool"),
  mlx_array_new_int: c("mlx_array", "int"),
  mlx_array_new_float32: c("mlx_array", "float"),
  mlx_array_new_float64: c("mlx_array", "double"),
  mlx_array_new_complex: c("mlx_array", "float", "float"),
  mlx_array_new_data: c("mlx_array", "void*", "int*", "int", "mlx_dtype"),
  mlx_array_ndim: c("size_t", "mlx_array"),
  mlx_array_dim: c("int", "mlx_array", "int"),
  mlx_array_dtype: c("mlx_dtype", "mlx_array"),
  mlx_array_eval: c("int", "mlx_array"),
  mlx_array_data_uint8: c("uint8_t*", "mlx_array"),
  mlx_array_data_int32: c("int32_t*", "mlx_array"),
  mlx_array_data_float32: c("float*", "mlx_array"),
};
