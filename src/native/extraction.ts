/** The native set comes out of the executable once; later starts find it in the user's cache. */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { threadId } from "node:worker_threads";
import type { EmbeddedFile, Executable } from "./executable.ts";
import { removeLeftovers } from "./leftovers.ts";
import { LibraryError } from "./library-error.ts";
import { codeOf } from "./thrown.ts";

type NativeSet = Pick<Executable, "nativeSet" | "files">;

/**
 * The folder inside `cache` that holds the set, which is unpacked when it is not there whole. It gets its name only
 * when every file is written and verified, so that a start that is killed, or two at once, do no harm.
 *
 * @throws LibraryError when the cache cannot be written or the executable is damaged
 */
export function extractOnce(set: NativeSet, cache: string): string {
  const folder = join(cache, set.nativeSet);
  // Like the process, a thread has files of its own.
  const temporary = `${folder}.tmp.${process.pid}.${threadId}`;
  try {
    if (isWhole(folder, set.files)) return folder;
    mkdirSync(cache, { recursive: true });
    removeLeftovers(cache, (name) => name.startsWith("native-"));
    for (const file of set.files) extract(file, join(temporary, file.name));
    moveInto(folder, temporary, set.files);
    return folder;
  } catch (error) {
    throw asLibraryError(error, cache, set.files);
  } finally {
    if (existsSync(temporary)) rmSync(temporary, { recursive: true });
  }
}

/** Sizes tell whether something was deleted or cut; contents are verified when they are written. */
function isWhole(folder: string, files: readonly EmbeddedFile[]): boolean {
  return files.every(
    ({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes,
  );
}

function extract({ name, path, sha256 }: EmbeddedFile, target: string): void {
  const content = Bun.zstdDecompressSync(readFileSync(path));
  if (createHash("sha256").update(content).digest("hex") !== sha256) {
    throw new LibraryError(
      `this executable is damaged (${name} has another sha256): fetch it again`,
    );
  }
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, content, { mode: 0o755 });
}

/** Renames `temporary`; a start that was faster has done the same work, and a set with gaps makes room. */
function moveInto(folder: string, temporary: string, files: readonly EmbeddedFile[]): void {
  try {
    renameSync(temporary, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    if (isWhole(folder, files)) return;
    const old = `${temporary}.old`;
    renameSync(folder, old);
    renameSync(temporary, folder);
    rmSync(old, { recursive: true, force: true });
  }
}

function asLibraryError(
  error: unknown,
  cache: string,
  files: readonly EmbeddedFile[],
): LibraryError {
  if (error instanceof LibraryError) return error;
  const code = codeOf(error);
  if (code === "ENOSPC" || code === "EDQUOT") {
    const megabytes = Math.ceil(files.reduce((total, { bytes }) => total + bytes, 0) / 1e6);
    return new LibraryError(
      `the disk of ${cache} is full: the native libraries need ${megabytes} MB; free some space, ` +
        "or set MLXCEL_CACHE_DIR to a directory on another disk",
      { cause: error },
    );
  }
  return new LibraryError(
    `the native libraries cannot be unpacked into ${cache} (${code || String(error)}); ` +
      "set MLXCEL_CACHE_DIR to a directory that can be written",
    { cause: error },
  );
}
