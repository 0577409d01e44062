import { check } from "./error.ts";
import { mlx } from "./library.ts";
import { readSlot, slot } from "./slot.ts";

// All figures are of the whole process: its threads share one allocator.

/** Bytes that live arrays occupy. */
export function activeBytes(): number {
  check("activeBytes", mlx.mlx_get_active_memory(slot));
  return readSlot();
}

/** The most that `activeBytes` has been since the start or the last reset. */
export function peakBytes(): number {
  check("peakBytes", mlx.mlx_get_peak_memory(slot));
  return readSlot();
}

export function resetPeak(): void {
  check("resetPeak", mlx.mlx_reset_peak_memory());
}

/** Bytes of freed buffers that wait for reuse. */
export function cacheBytes(): number {
  check("cacheBytes", mlx.mlx_get_cache_memory(slot));
  return readSlot();
}

/** Bounds the freed buffers that wait for reuse; returns the former bound. */
export function setCacheLimit(bytes: number): number {
  check("setCacheLimit", mlx.mlx_set_cache_limit(slot, bytes));
  return readSlot();
}

/** The size of live arrays above which mlx returns cached buffers first; returns the former one. */
export function setMemoryLimit(bytes: number): number {
  check("setMemoryLimit", mlx.mlx_set_memory_limit(slot, bytes));
  return readSlot();
}

/** Returns the freed buffers to the system. */
export function clearCache(): void {
  check("clearCache", mlx.mlx_clear_cache());
}
