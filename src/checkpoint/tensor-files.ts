import type { Tensor } from "../../ffi/index.ts";
import type { StoredTensor } from "./safetensors-header.ts";

/** Where a tensor lies. */
export interface TensorLocation extends StoredTensor {
  readonly file: string;
}

/** The tensors of a checkpoint, whatever the format of its files. */
export interface TensorFiles {
  /** The directory or the file, to be named in errors. */
  readonly path: string;
  readonly locations: ReadonlyMap<string, TensorLocation>;
  /** What most bytes are stored as, in the format's own spelling: F32, BF16, Q8_0 … */
  readonly storedDtype: string;
  /** The tensor of one of the locations, outside of every scope: the same one each time. */
  tensor(name: string): Tensor;
  /**
   * The same without its elements being read: for computing on the CPU with few of its rows at a time. undefined
   * where the format, the type or the library does not allow it.
   */
  mapped(name: string): Tensor | undefined;
  /** Every tensor that exists so far, asked for or not. */
  opened(): Iterable<Tensor>;
}

/** The type that most bytes of these tensors have, of the types `counted`. */
export function prevailingDtype(
  tensors: Iterable<StoredTensor>,
  counted: (dtype: string) => boolean = () => true,
): string {
  const bytesOf = new Map<string, number>();
  for (const { dtype, begin, end } of tensors) {
    if (counted(dtype)) bytesOf.set(dtype, (bytesOf.get(dtype) ?? 0) + end - begin);
  }
  return [...bytesOf].sort(([, a], [, b]) => b - a)[0]?.[0] ?? "none";
}
