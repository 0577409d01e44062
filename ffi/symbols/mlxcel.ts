import { c } from "../signature.ts";

/**
 * What this project's own build of libmlxc adds: an error handler that keeps the last message per thread, and the
 * number of threads that BLAS uses. Absent from any other build of mlx-c.
 */
export const mlxcel = {
  mlxcel_error_handler: c("void", "char*", "void*"),
  mlxcel_last_error: c("char*"),
  mlxcel_clear_error: c("void"),
  mlxcel_set_blas_threads: c("void", "int"),
  mlxcel_blas_threads: c("int"),
};
