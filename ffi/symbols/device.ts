import { c } from "../signature.ts";

/** mlx/c/device.h */
export const device = {
  mlx_device_new_type: c("mlx_device", "mlx_device_type", "int"),
  mlx_device_free: c("int", "mlx_device"),
  mlx_device_info_new: c("mlx_device_info"),
  mlx_device_info_get: c("int", "mlx_device_info*", "mlx_device"),
  mlx_device_info_free: c("int", "mlx_device_info"),
  mlx_device_info_has_key: c("int", "bool*", "mlx_device_info", "char*"),
  mlx_device_info_get_string: c("int", "char**", "mlx_device_info", "char*"),
};
