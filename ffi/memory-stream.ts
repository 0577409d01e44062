import { read, toArrayBuffer } from "bun:ffi";
import { libc, libcPath, mlx, symbolAddress } from "./library.ts";

/**
 * A C stream in memory that catches error texts where the library is not our own build of mlx-c. There is one per
 * process: when two threads fail in the same instant, one of them may get the other's text.
 */
export interface MemoryStream {
  /** FILE* */
  readonly file: number;
  /** char** and size_t* side by side, kept up to date by fflush. */
  readonly slots: number;
}

export function isMemoryStream(value: unknown): value is MemoryStream {
  return typeof value === "object" && value !== null && "file" in value && "slots" in value;
}

/** Never closed: mlx writes to it until the process ends. */
export function openMemoryStream(): MemoryStream {
  const slots = libc.calloc(2, 8) ?? 0;
  const file = slots === 0 ? 0 : (libc.open_memstream(slots, slots + 8) ?? 0);
  if (file === 0) throw new Error("no memory for the error texts of mlx");
  return { file, slots };
}

/** Makes C's own `fputs(message, stream)` the error handler of mlx. */
export function catchErrors({ file }: MemoryStream): void {
  // Without a destructor mlx-c drops the stream; flushing is the harmless one
  const destructor = symbolAddress(libcPath, "fflush");
  mlx.mlx_set_error_handler(symbolAddress(libcPath, "fputs"), file, destructor);
}

/** What was written since the last call. */
export function takeText({ file, slots }: MemoryStream): string {
  libc.flockfile(file);
  libc.fflush(file);
  const bytes = Number(read.u64(slots, 8));
  const text =
    bytes === 0
      ? ""
      : new TextDecoder().decode(toArrayBuffer(read.ptr(slots, 0), 0, bytes).slice(0));
  libc.rewind(file);
  libc.funlockfile(file);
  return text;
}
