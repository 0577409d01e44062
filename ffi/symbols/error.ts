import { c } from "../signature.ts";

/** mlx/c/error.h */
export const error = {
  mlx_set_error_handler: c("void", "mlx_error_handler_func", "void*", "void(*)(void*)"),
};
