import { read, toArrayBuffer } from "bun:ffi";
import { additions, libc, libcPath, libraryPath, mlx, symbolAddress } from "./library.ts";

/** A failure inside mlx, or a misuse of a tensor. The message is mlx's own, behind the operation's name. */
export class MlxError extends Error {
  override readonly name = "MlxError";

  constructor(
    readonly operation: string,
    message: string,
  ) {
    super(`${operation}: ${message}`);
  }
}

/**
 * A C stream in memory that catches error texts when the library is not our own build. One per process: when two
 * threads fail in the same instant, one of them may get the other's text.
 */
interface MemoryStream {
  /** FILE* */
  readonly file: number;
  /** char** and size_t* side by side, kept up to date by fflush. */
  readonly slots: number;
}

let sink: MemoryStream | undefined;

/**
 * What another thread passes to `installErrorHandler`; it survives postMessage and means nothing to anyone else.
 */
export function errorSink(): unknown {
  return sink;
}

/**
 * Replaces mlx-c's own error handler, which ends the process, by a native one that keeps the text. mlx may call
 * it on any thread, so it must not be a JavaScript callback. Importing ffi does this; a program with workers
 * on a foreign build of mlx-c passes the main thread's `errorSink()` to each worker, so that all read one sink.
 */
export function installErrorHandler(shared?: unknown): void {
  if (additions) {
    mlx.mlx_set_error_handler(symbolAddress(libraryPath, "mlxcel_error_handler"), 0, 0);
    return;
  }
  sink = isMemoryStream(shared) ? shared : (sink ?? openMemoryStream());
  const fputs = symbolAddress(libcPath, "fputs");
  const fflush = symbolAddress(libcPath, "fflush");
  // Without a destructor mlx-c drops the stream; flushing is the harmless one.
  mlx.mlx_set_error_handler(fputs, sink.file, fflush);
}

function isMemoryStream(value: unknown): value is MemoryStream {
  return typeof value === "object" && value !== null && "file" in value && "slots" in value;
}

function openMemoryStream(): MemoryStream {
  const slots = libc.calloc(2, 8) ?? 0;
  const file = slots === 0 ? 0 : (libc.open_memstream(slots, slots + 8) ?? 0);
  if (file === 0) throw new MlxError("installErrorHandler", "no memory for the error text");
  return { file, slots };
}

/** The text of this thread's last failure; reading it clears it. */
function takeErrorText(): string {
  const text = additions ? takeThreadText(additions) : sink ? takeStreamText(sink) : "";
  // mlx-c appends the place in its own source, a path of the machine that built it.
  const own = text.replace(/ at \S+:\d+\s*$/, "").trim();
  return own === "" ? "mlx failed without a message" : own;
}

function takeThreadText(native: NonNullable<typeof additions>): string {
  const text = native.mlxcel_last_error() ?? "";
  native.mlxcel_clear_error();
  return text;
}

function takeStreamText({ file, slots }: MemoryStream): string {
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

/** The error of an operation that mlx has just refused. */
export function failure(operation: string): MlxError {
  return new MlxError(operation, takeErrorText());
}

/** Throws unless mlx returned success. */
export function check(operation: string, status: number): void {
  if (status !== 0) throw failure(operation);
}

installErrorHandler();
