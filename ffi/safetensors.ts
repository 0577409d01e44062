import { check, failure } from "./error.ts";
import { mlx } from "./library.ts";
import { readHeader } from "./safetensors-header.ts";
import { readSlot, Slot, slot } from "./slot.ts";
import { cpuStream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

export interface Safetensors {
  readonly tensors: Map<string, Tensor>;
  /** The file's `__metadata__`. */
  readonly metadata: Map<string, string>;
}

const metadataSlot = new Slot();

/**
 * Opens a safetensors file. The header is checked against the file now; the elements are read when a tensor is
 * evaluated. Throws MlxError naming the file when it is missing, damaged or cut short.
 */
export function loadSafetensors(path: string): Safetensors {
  const { names, metadata } = readHeader(path);
  check("loadSafetensors", mlx.mlx_load_safetensors(slot, metadataSlot.address, path, cpuStream()));
  const loaded = readSlot();
  mlx.mlx_map_string_to_string_free(metadataSlot.read());
  try {
    const tensors = new Map(
      names.map((name) => [
        name,
        result("loadSafetensors", mlx.mlx_map_string_to_array_get(slot, loaded, name)),
      ]),
    );
    return { tensors, metadata };
  } finally {
    mlx.mlx_map_string_to_array_free(loaded);
  }
}

/** Writes the tensors, evaluating them, and string metadata to a file. */
export function saveSafetensors(
  path: string,
  tensors: ReadonlyMap<string, Tensor>,
  metadata: ReadonlyMap<string, string> = new Map(),
): void {
  const arrays = mlx.mlx_map_string_to_array_new();
  const strings = mlx.mlx_map_string_to_string_new();
  if (arrays === null || strings === null) throw failure("saveSafetensors");
  try {
    for (const [name, tensor] of tensors) {
      check("saveSafetensors", mlx.mlx_map_string_to_array_insert(arrays, name, pointer(tensor)));
    }
    for (const [key, value] of metadata) {
      check("saveSafetensors", mlx.mlx_map_string_to_string_insert(strings, key, value));
    }
    check("saveSafetensors", mlx.mlx_save_safetensors(path, arrays, strings));
  } finally {
    mlx.mlx_map_string_to_array_free(arrays);
    mlx.mlx_map_string_to_string_free(strings);
  }
}
