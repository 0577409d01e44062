/** What the commands without a server write: the answer to stdout or a file, remarks to stderr. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { dirname } from "node:path";
import { codeOf, reasonOf } from "../native/thrown.ts";
import { oneLine } from "../native/one-line.ts";
import { countOf, Progress } from "./progress.ts";
import { UsageError } from "./usage-error.ts";

const WRITE_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no file can be made there"],
  ["EACCES", "this user may not write there"],
  ["EPERM", "this user may not write there"],
  ["EROFS", "the file system is read-only"],
  ["ENOSPC", "the disk is full"],
]);

/**
 * Finds out before the work is done whether `--output` can be written; what is there already stays as it is.
 * @throws UsageError one line that says why not
 */
export function requireWritable(path: string | undefined): void {
  if (path === undefined) return;
  const directory = dirname(path);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) throw new UsageError(`--output ${path}: is a directory; name a file`);
  if (!existsSync(directory)) {
    throw new UsageError(`--output ${path}: there is no directory ${directory}; make it first`);
  }
  try {
    // opening a pipe would wait for its reader
    if (found && !found.isFile()) accessSync(path, constants.W_OK);
    else closeSync(openSync(path, "a"));
    if (!found) unlinkSync(path);
  } catch (error) {
    throw new UsageError(cannotWrite(path, error));
  }
}

function cannotWrite(path: string, error: unknown): string {
  return `--output ${path} cannot be written: ${WRITE_PROBLEMS.get(codeOf(error)) ?? reasonOf(error)}`;
}

/** Writes the answer; nothing else goes to stdout. */
export async function writeAnswer(
  answer: string | Uint8Array,
  path: string | undefined,
): Promise<void> {
  if (path === undefined) {
    await Bun.write(Bun.stdout, answer);
    return;
  }
  try {
    await Bun.write(path, answer, { createPath: false });
  } catch (error) {
    throw new Error(cannotWrite(path, error), { cause: error });
  }
}

/** JSON text as a line. */
export function withNewline(json: Uint8Array): Uint8Array {
  return Buffer.concat([json, Buffer.from("\n")]);
}

/** Runs something long over a file's lines with its progress on stderr. */
export async function withProgress<T>(
  noun: string,
  total: number,
  run: (onProgress: (done: number) => void) => Promise<T>,
): Promise<T> {
  const progress = new Progress({ stream: process.stderr, unit: countOf(noun), total });
  try {
    return await run((done) => progress.update(done));
  } finally {
    progress.end();
  }
}

export function remark(text: string): void {
  process.stderr.write(`mlxcel: ${oneLine(text)}\n`);
}

/** The columns of the terminal, or a common width where the table goes to a file. */
export function terminalColumns(): number {
  return process.stdout.columns || 100;
}
