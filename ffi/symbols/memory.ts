import { c } from "../signature.ts";

/** mlx/c/memory.h */
export const memory = {
  mlx_clear_cache: c("int"),
  mlx_get_active_memory: c("int", "size_t*"),
  mlx_get_cache_memory: c("int", "size_t*"),
  mlx_get_peak_memory: c("int", "size_t*"),
  mlx_reset_peak_memory: c("int"),
  mlx_set_cache_limit: c("int", "size_t*", "size_t"),
  mlx_set_memory_limit: c("int", "size_t*", "size_t"),
};
