import { c } from "../signature.ts";

/** mlx/c/map.h */
export const map = {
  mlx_map_string_to_array_new: c("mlx_map_string_to_array"),
  mlx_map_string_to_array_free: c("int", "mlx_map_string_to_array"),
  mlx_map_string_to_array_insert: c("int", "mlx_map_string_to_array", "char*", "mlx_array"),
  mlx_map_string_to_array_get: c("int", "mlx_array*", "mlx_map_string_to_array", "char*"),
  mlx_map_string_to_string_new: c("mlx_map_string_to_string"),
  mlx_map_string_to_string_free: c("int", "mlx_map_string_to_string"),
  mlx_map_string_to_string_insert: c("int", "mlx_map_string_to_string", "char*", "char*"),
};
