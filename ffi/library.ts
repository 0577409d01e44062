import { dlopen } from "bun:ffi";
import { LibraryError } from "../src/native/library-error.ts";
import { findLibrary } from "../src/native/library.ts";
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

/**
 * A table of our own build, or undefined where the library is another build of mlx-c. Throws where it has some of the
 * symbols: without the others models would run, several times slower.
 */
function openOwn<Table extends SymbolTable>(
  path: string,
  table: Table,
): Callable<Table> | undefined {
  const symbols = Object.keys(table);
  const missing = symbols.filter((symbol) => symbolAddress(path, symbol) === 0);
  if (missing.length === symbols.length) return undefined;
  if (missing.length === 0) return open(path, table);
  throw new LibraryError(
    `native library ${path} is of another version (it lacks ${missing[0]}): run npm start once to rebuild it`,
  );
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
