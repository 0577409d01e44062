import type { Packing, Quantized, Tensor } from "../../ffi/index.ts";
import type { TableFile } from "./table-file.ts";

/** A tensor of a checkpoint, and where it lies. */
export interface TensorLocation {
  readonly file: string;
  /** In the format's own spelling: F32, BF16, Q8_0 … or, where `packing` says more, `4-bit`. */
  readonly dtype: string;
  /** Of a quantised matrix that of the numbers it stands for. */
  readonly shape: readonly number[];
  readonly byteLength: number;
  /** How a matrix is quantised that is given so. */
  readonly packing?: Packing;
}

/** The tensors of a checkpoint, whatever the format of its files. */
export interface TensorFiles {
  /** The directory or the file, to be named in errors. */
  readonly path: string;
  readonly locations: ReadonlyMap<string, TensorLocation>;
  /** What most bytes are stored as, in the spelling of the locations. */
  readonly storedDtype: string;
  /** The tensor of one of the locations, outside of every scope: the same one each time. Quantised where it has a packing. */
  tensor(name: string): Tensor | Quantized;
  /** A large f32 table as it lies in its file, a new one each time; undefined for every other tensor. */
  tableFile(name: string): TableFile | undefined;
  /** Every tensor that exists so far, asked for or not. */
  opened(): Iterable<Tensor>;
}

/** The type that most bytes of these tensors have. */
export function prevailingDtype(
  tensors: Iterable<Pick<TensorLocation, "dtype" | "byteLength">>,
): string {
  const bytesOf = new Map<string, number>();
  for (const { dtype, byteLength } of tensors) {
    bytesOf.set(dtype, (bytesOf.get(dtype) ?? 0) + byteLength);
  }
  return [...bytesOf].sort(([, a], [, b]) => b - a)[0]?.[0] ?? "none";
}
