import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { additions, libraryPath, mlx, symbolAddress } from "./library.ts";
import {
  catchErrors,
  isMemoryStream,
  type MemoryStream,
  openMemoryStream,
  takeText,
} from "./memory-stream.ts";

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

/** The key under which workers find the sink of the thread that started them. */
const SINK_KEY = "mlxcel:mlx-error-sink";

let sink: MemoryStream | undefined;

/**
 * Replaces mlx-c's own error handler, which ends the process, by a native one that keeps the text: mlx may call it
 * on any thread, so it must not be a JavaScript callback. Importing ffi does this by itself. Workers find the sink of
 * the thread that started them if that thread imports ffi first.
 */
export function installErrorHandler(): void {
  if (additions) {
    mlx.mlx_set_error_handler(symbolAddress(libraryPath, "mlxcel_error_handler"), 0, 0);
    return;
  }
  const shared = getEnvironmentData(SINK_KEY);
  sink = isMemoryStream(shared) ? shared : openMemoryStream();
  setEnvironmentData(SINK_KEY, { ...sink });
  catchErrors(sink);
}

/** The text of this thread's last failure; reading it clears it. */
function takeErrorText(): string {
  const text = sink ? takeText(sink) : (additions?.mlxcel_last_error() ?? "");
  additions?.mlxcel_clear_error();
  // mlx-c appends the place in its own source, a path of the machine that built it
  const own = text.replace(/ at \S+:\d+\s*$/, "").trim();
  return own === "" ? "mlx failed without a message" : own;
}

/** The error of an operation that mlx has just refused; `subject` names the file that it was about. */
export function failure(operation: string, subject?: string): MlxError {
  const text = takeErrorText();
  return new MlxError(operation, subject === undefined ? text : `${subject}: ${text}`);
}

/** Throws unless mlx returned success. */
export function check(operation: string, status: number): void {
  if (status !== 0) throw failure(operation);
}

installErrorHandler();
