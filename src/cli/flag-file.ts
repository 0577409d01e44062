/** Files that flags name. */
import { readFileSync } from "node:fs";
import { codeOf } from "../native/thrown.ts";
import { UsageError } from "./usage-error.ts";

const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no such file"],
  ["ENOTDIR", "no such file"],
  ["EISDIR", "is a directory, not a file"],
  ["EACCES", "this user may not read it"],
  ["EPERM", "this user may not read it"],
]);

/** The text of the file that a flag names. */
export function readFlagFile(flag: string, path: string): string {
  return readFlagBytes(flag, path).toString("utf8");
}

/**
 * The bytes of the file that a flag names; pipes will do. Read once: a second time a pipe is empty.
 * @throws UsageError one line that names the flag
 */
export function readFlagBytes(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = codeOf(error);
    throw new UsageError(`${flag} ${path}: ${PROBLEMS.get(code) ?? String(error)}`);
  }
}
