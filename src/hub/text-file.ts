import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../native/thrown.ts";

/**
 * What a file says; undefined where nothing is.
 *
 * @throws Error one line that names it, for a directory, for a pipe, which might never end, and for want of permission
 */
export function readText(path: string): string | undefined {
  let problem = "not a file";
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return undefined;
    if (found.isFile()) return readFileSync(path, "utf8");
  } catch (error) {
    problem = codeOf(error) || String(error);
    if (problem === "ENOTDIR") return undefined;
  }
  throw new Error(`${path} cannot be read (${problem}); remove it, or give the right to read it`);
}
