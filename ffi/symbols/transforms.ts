import { c } from "../signature.ts";

/** mlx/c/transforms.h */
export const transforms = {
  mlx_eval: c("int", "mlx_vector_array"),
  mlx_async_eval: c("int", "mlx_vector_array"),
};
