import { c } from "../signature.ts";

/** mlx/c/metal.h */
export const metal = {
  mlx_metal_is_available: c("int", "bool*"),
};
