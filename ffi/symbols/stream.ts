import { c } from "../signature.ts";

/** mlx/c/stream.h */
export const stream = {
  mlx_stream_new_device: c("mlx_stream", "mlx_device"),
  mlx_synchronize: c("int", "mlx_stream"),
};
