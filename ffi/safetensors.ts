import { closeSync, openSync, readSync } from "node:fs";
import { check, failure } from "./error.ts";
import { mlx } from "./library.ts";
import { readSlot, Slot, slot } from "./slot.ts";
import { cpuStream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

interface Safetensors {
  readonly tensors: Map<string, Tensor>;
  /** The file's `__metadata__`. */
  readonly metadata: Map<string, string>;
}

const metadataSlot = new Slot();

/**
 * Opens a safetensors file. mlx checks the header against the file now; the elements are read when a tensor is
 * evaluated. Throws MlxError naming the file when it is missing, damaged or cut short.
 */
export function loadSafetensors(path: string): Safetensors {
  const status = mlx.mlx_load_safetensors(slot, metadataSlot.address, path, cpuStream());
  const loaded = readSlot();
  // The metadata is read from the header below, in one go with the names
  mlx.mlx_map_string_to_string_free(metadataSlot.read());
  if (status !== 0) throw failure("loadSafetensors", path);
  try {
    const { __metadata__, ...entries } = readHeader(path);
    // mlx itself writes null where there is none
    const metadata = __metadata__ ?? {};
    const tensors = new Map(
      Object.keys(entries).map((name) => [
        name,
        result("loadSafetensors", mlx.mlx_map_string_to_array_get(slot, loaded, name)),
      ]),
    );
    return { tensors, metadata: new Map(Object.entries(metadata)) };
  } finally {
    mlx.mlx_map_string_to_array_free(loaded);
  }
}

interface Header {
  readonly __metadata__?: Readonly<Record<string, string>> | null;
  readonly [tensor: string]: unknown;
}

/** The header of a file that mlx has accepted; https://github.com/huggingface/safetensors#format. */
function readHeader(path: string): Header {
  const file = openSync(path, "r");
  try {
    const length = new DataView(new ArrayBuffer(8));
    readSync(file, length, 0, 8, 0);
    const text = new Uint8Array(Number(length.getBigUint64(0, true)));
    readSync(file, text, 0, text.length, 8);
    return JSON.parse(new TextDecoder().decode(text)) as Header;
  } finally {
    closeSync(file);
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
