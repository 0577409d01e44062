import { additions } from "./library.ts";

// A setting of the whole process, known only to our own build of the native library. macOS multiplies with
// Accelerate, which chooses its threads itself.
const openBlas = process.platform === "linux" ? additions : undefined;

/** Threads that one CPU matrix product uses; undefined where it cannot be told. */
export function blasThreads(): number | undefined {
  return openBlas?.mlxcel_blas_threads();
}

/** Sets the threads of CPU matrix products; false where that is not possible. */
export function setBlasThreads(count: number): boolean {
  openBlas?.mlxcel_set_blas_threads(count);
  return openBlas !== undefined;
}
