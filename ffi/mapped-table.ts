import { nativeKernels } from "./library.ts";
import { slot } from "./slot.ts";
import { result, type Tensor } from "./tensor.ts";

/** Where a table lies: f32 values, row-major, from byte `begin` of the file on: a multiple of 4, 8 or more. */
export interface TableInFile {
  readonly path: string;
  readonly begin: number;
  readonly rows: number;
  readonly width: number;
}

/**
 * [rows, width] float32 for operations on the CPU. It stays in the file, which must not be written to: only the pages
 * that are read take memory. undefined where the library has no such tables. Throws MlxError naming a file that is
 * missing or too short.
 */
export function mapTable({ path, begin, rows, width }: TableInFile): Tensor | undefined {
  if (!nativeKernels) return undefined;
  return result("mapTable", nativeKernels.mlxcel_map_table(slot, path, begin, rows, width));
}
