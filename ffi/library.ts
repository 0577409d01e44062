import { dlopen, suffix } from "bun:ffi";
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { c, type Callable, type SymbolTable, foreignFunctions } from "./signature.ts";
import { array } from "./symbols/array.ts";
import { device } from "./symbols/device.ts";
import { error } from "./symbols/error.ts";
import { fast } from "./symbols/fast.ts";
import { io } from "./symbols/io.ts";
import { kernels } from "./symbols/kernels.ts";
import { map } from "./symbols/map.ts";
import { memory } from "./symbols/memory.ts";
import { metal } from "./symbols/metal.ts";
import { mlxcel } from "./symbols/mlxcel.ts";
import { ops } from "./symbols/ops.ts";
import { stream } from "./symbols/stream.ts";
import { string } from "./symbols/string.ts";
import { transforms } from "./symbols/transforms.ts";
import { vector } from "./symbols/vector.ts";
import { version } from "./symbols/version.ts";

/** The mlx-c that the symbol tables are written for. */
export const MLXC_VERSION = "0.7.0";

const mlxTable = {
  ...array,
  ...device,
  ...error,
  ...fast,
  ...io,
  ...map,
  ...memory,
  ...metal,
  ...ops,
  ...stream,
  ...string,
  ...transforms,
  ...vector,
  ...version,
};

/** The native library cannot be found or opened; the message names the file and the next step. */
export class LibraryError extends Error {
  override readonly name = "LibraryError";
}

/**
 * Where libmlxc should be: `MLXCEL_MLXC_PATH` (the file, or the directory that holds it) or else the set that
 * the first start puts under vendor/lib.
 */
export function findLibrary(environment: Record<string, string | undefined>): string {
  const file = `libmlxc.${suffix}`;
  const override = environment["MLXCEL_MLXC_PATH"] && resolve(environment["MLXCEL_MLXC_PATH"]);
  const path = override
    ? existsSync(override) && statSync(override).isDirectory()
      ? join(override, file)
      : override
    : join(import.meta.dir, "../vendor/lib", `${process.platform}-${process.arch}`, file);
  if (existsSync(path)) return path;
  throw new LibraryError(
    override
      ? `native library not found at ${path}: correct MLXCEL_MLXC_PATH, or unset it and run npm start once`
      : `native library not found at ${path}: run npm start once, or set MLXCEL_MLXC_PATH`,
  );
}

function open<Table extends SymbolTable>(path: string, table: Table): Callable<Table> {
  return dlopen(path, foreignFunctions(table)).symbols as unknown as Callable<Table>;
}

function openMlx(path: string): Callable<typeof mlxTable> {
  try {
    return open(path, mlxTable);
  } catch (cause) {
    throw new LibraryError(
      `native library ${path} cannot be used, mlx-c ${MLXC_VERSION} is needed: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

/** A table of our own build, or undefined where the library is another build of mlx-c. */
function openOwn<Table extends SymbolTable>(
  path: string,
  table: Table,
): Callable<Table> | undefined {
  const present = Object.keys(table).every((symbol) => symbolAddress(path, symbol) !== 0);
  return present ? open(path, table) : undefined;
}

export const libcPath = process.platform === "darwin" ? "/usr/lib/libSystem.B.dylib" : "libc.so.6";

/** The C library: what is needed to look up addresses and to catch error texts without our own native code. */
export const libc = open(libcPath, {
  dlopen: c("void*", "char*", "int"),
  dlsym: c("void*", "void*", "char*"),
  calloc: c("void*", "size_t", "size_t"),
  open_memstream: c("void*", "void*", "void*"),
  flockfile: c("void", "void*"),
  funlockfile: c("void", "void*"),
  fflush: c("int", "void*"),
  rewind: c("void", "void*"),
});

const RTLD_NOW = 2;

/** The address of a symbol in a library, 0 where it is absent. */
export function symbolAddress(path: string, symbol: string): number {
  const library = libc.dlopen(path, RTLD_NOW);
  return library === null ? 0 : (libc.dlsym(library, symbol) ?? 0);
}

/** The file that was opened. */
export const libraryPath = findLibrary(process.env);

/** mlx-c. Only modules of ffi/ call it. */
export const mlx = openMlx(libraryPath);

export const additions = openOwn(libraryPath, mlxcel);

/** The CPU kernels. */
export const nativeKernels = openOwn(libraryPath, kernels);
