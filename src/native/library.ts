/** Where the native files are that the program opens. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import lock from "../../vendor/native.lock.json" with { type: "json" };
import { systemProblem, thisSystem } from "../../vendor/supported-system.mjs";
import { cacheFolder } from "./cache-folder.ts";
import type { Environment } from "./environment.ts";
import { executable } from "./executable.ts";
import { extractOnce } from "./extraction.ts";
import { LibraryError } from "./library-error.ts";

const FILE = process.platform === "darwin" ? "libmlxc.dylib" : "libmlxc.so";

/**
 * The folder of the pinned native set: unpacked from the executable, or what the first `npm start` has put under
 * vendor/lib. Executables look for sharp's addon there, too (vendor/bundle.ts).
 *
 * @throws LibraryError when the system is too old for the set, or it cannot be unpacked
 */
export function nativeFolder(env: Environment): string {
  const problem = systemProblem(thisSystem(), lock.platforms);
  if (problem !== undefined) throw new LibraryError(problem);
  return executable
    ? extractOnce(executable, cacheFolder(env, process.platform))
    : join(import.meta.dir, "../../vendor/lib", `${process.platform}-${process.arch}`);
}

/**
 * Where libmlxc is: `MLXCEL_MLXC_PATH` (the file, or the directory that holds it), else in the pinned set.
 *
 * @throws LibraryError when it is missing, or there can be no set on this system
 */
export function findLibrary(env: Environment): string {
  const override = env["MLXCEL_MLXC_PATH"] && resolve(env["MLXCEL_MLXC_PATH"]);
  if (override) return overridden(override);
  const path = join(nativeFolder(env), FILE);
  if (existsSync(path)) return path;
  throw new LibraryError(
    `native library not found at ${path}: run npm start once, or set MLXCEL_MLXC_PATH`,
  );
}

function overridden(override: string): string {
  const isFolder = existsSync(override) && statSync(override).isDirectory();
  const path = isFolder ? join(override, FILE) : override;
  if (existsSync(path)) return path;
  const instead = executable ? "unset it" : "unset it and run npm start once";
  throw new LibraryError(
    `native library not found at ${path}: correct MLXCEL_MLXC_PATH, or ${instead}`,
  );
}
