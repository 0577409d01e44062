import { c } from "../signature.ts";

/** mlx/c/string.h */
export const string = {
  mlx_string_data: c("char*", "mlx_string"),
  mlx_string_free: c("int", "mlx_string"),
};
