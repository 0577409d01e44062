import { c } from "../signature.ts";

/** mlx/c/version.h */
export const version = {
  mlx_version: c("int", "mlx_string*"),
};
