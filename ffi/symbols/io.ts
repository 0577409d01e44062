import { c } from "../signature.ts";

/** mlx/c/io.h */
export const io = {
  mlx_load_safetensors: c(
    "int",
    "mlx_map_string_to_array*",
    "mlx_map_string_to_string*",
    "char*",
    "mlx_stream",
  ),
  mlx_save_safetensors: c("int", "char*", "mlx_map_string_to_array", "mlx_map_string_to_string"),
};
