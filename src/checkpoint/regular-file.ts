import { statSync, type Stats } from "node:fs";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError } from "./error.ts";

/**
 * Whether there is a file, links followed. Throws CheckpointError where that cannot be told, and for a directory, a
 * pipe or a device in its place: reading one would fail without a name, or never end.
 */
export function isFile(path: string): boolean {
  const found = statOf(path);
  if (found === undefined) return false;
  if (found.isFile()) return true;
  const kind = found.isDirectory() ? "a directory" : "a pipe or a device";
  throw new CheckpointError(`${path} is ${kind}, not a file; download it again`);
}

/** undefined where nothing is. Throws CheckpointError where that cannot be told, as for want of permission. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new CheckpointError(`${path} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}
