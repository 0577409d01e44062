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

/** Throws CheckpointError where isFile does, and where nothing is. */
export function requireFile(path: string): void {
  if (!isFile(path)) throw new CheckpointError(`${path} is missing; download it again`);
}

/** Throws CheckpointError for what Git leaves in place of a large file when Git LFS did not run. */
export function refuseLfsPointer(path: string, start: string): void {
  if (!start.startsWith("version https://git-lfs.github.com/spec/")) return;
  throw new CheckpointError(
    `${path} is a Git LFS pointer, not the file itself; run "git lfs pull" in its directory or download it again`,
  );
}

/** undefined where nothing is. Throws CheckpointError where that cannot be told, as for want of permission. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new CheckpointError(`${path} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}
