import { additions } from "./library.ts";

// BLAS threads are a setting of the whole process, known only to our own build of the native library.

/** Threads that one CPU matrix product uses; undefined where it cannot be told. */
export function blasThreads(): number | undefined {
  return additions?.mlxcel_blas_threads();
}

/** Sets the threads of CPU matrix products; false where that is not possible. */
export function setBlasThreads(count: number): boolean {
  additions?.mlxcel_set_blas_threads(count);
  return additions !== undefined;
}
