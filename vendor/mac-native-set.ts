/** The native set for a Mac, made on Linux: MLX as it is published, and libmlxc compiled and linked by zig. */
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync } from "node:fs";
import { cp, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { exclusively } from "../src/hub/exclusive.ts";
import { CommandError, run } from "./command.ts";
import { fetchCrate, fetchWheel, unpackCrate, unpackWheel } from "./download.ts";
import { installFolder, isInstalled } from "./install.ts";
import { copyLicenses } from "./licenses.ts";
import { readMachO } from "./mach-o.ts";
import { foreignSymbols, stubOf } from "./macos-symbols.ts";
import {
  cacheFolder,
  contentKey,
  pinnedMlxC,
  pinnedPlatforms,
  pinnedZig,
  vendorFolder,
} from "./pinned.ts";
import { type ReportFraction, say, step } from "./progress.ts";
import { SetupError } from "./setup-error.ts";

const TARGET = "aarch64-macos.14.0";
const native = join(vendorFolder, "native");
/** Our own entry points; the CPU kernels are not for a Mac, where MLX's operations use its GPU. */
const SOURCES = ["error_handler.cpp", "blas_threads.c"];
const HEADERS = ["format_compat.h", "exported_api.h"];

// zig's libc++ is meant for static linking. With these it is used as the header of the system's: what macOS 14 does
// not have stays inline, and its classes are taken from there.
const SYSTEM_LIBCXX = [
  "-U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS",
  "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1",
  "-U_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
  "-U_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS",
];
const CXX = [
  "-std=c++20",
  ...SYSTEM_LIBCXX,
  "-DMLXCEL_OWN_FORMAT",
  ...HEADERS.flatMap((header) => ["-include", header]),
];

const COMPILE = [
  ...["-target", TARGET, "-O2", "-fvisibility=hidden"],
  ...["-I.", "-Imlx-c", "-Imlx/mlx/include"],
];

/** Where a build takes place: `mlx-c`, `mlx` and `zig` lie in it, our own sources are copied beside them. */
class Workshop {
  readonly folder = join(cacheFolder, `mac-build.${process.pid}`);
  readonly mlxWheel = join(this.folder, "mlx");
  readonly #zigWheel = join(this.folder, "zig");
  readonly mlxC = join(this.folder, "mlx-c");

  async furnish(): Promise<void> {
    const mlx = pinnedPlatforms["darwin-arm64"]?.mlx;
    if (mlx === undefined) throw new Error("no pins for darwin-arm64");
    const [crate, mlxFile, zigFile] = [
      await fetchCrate(pinnedMlxC),
      await fetchWheel(mlx),
      await fetchWheel(pinnedZig),
    ];
    await step("unpacking MLX for macOS, mlx-c and zig", async () => {
      const sources = join(this.folder, "crate");
      await unpackCrate(crate, sources);
      await cp(join(sources, pinnedMlxC.source), this.mlxC, { recursive: true });
      await unpackWheel(mlxFile, this.mlxWheel);
      await unpackWheel(zigFile, this.#zigWheel);
      chmodSync(join(this.#zigWheel, "ziglang/zig"), 0o755);
    });
    for (const name of [...SOURCES, ...HEADERS]) {
      copyFileSync(join(native, name), join(this.folder, name));
    }
  }

  /** All paths that zig sees are relative, so that none of this machine gets into the library. */
  async zig(...args: string[]): Promise<void> {
    const caches = { ZIG_GLOBAL_CACHE_DIR: "zig-cache", ZIG_LOCAL_CACHE_DIR: "zig-cache" };
    try {
      await run(["zig/ziglang/zig", ...args], { log: "zig", cwd: this.folder, env: caches });
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      throw new SetupError(
        `libmlxc for macOS cannot be built: ${error.lastLine(/error: /)} (log: ${error.log})`,
      );
    }
  }

  async compile(report: ReportFraction): Promise<void> {
    mkdirSync(join(this.folder, "objects"));
    const sources = [...globSync("mlx-c/mlx/c/*.cpp", { cwd: this.folder }), ...SOURCES].sort();
    const waiting = [...sources];
    const compileNext = async () => {
      for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
        const language = source.endsWith(".c") ? ["cc"] : ["c++", ...CXX];
        const output = join("objects", `${basename(source)}.o`);
        await this.zig(...language, ...COMPILE, "-c", source, "-o", output);
        report(1 - waiting.length / sources.length);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, compileNext));
  }

  /** `zig cc`, not `zig c++`: that would put its own libc++ in. */
  async link(): Promise<string> {
    // zig has a stub of libSystem, which is linked by itself.
    await writeFile(join(this.folder, "libc++.tbd"), stubOf("/usr/lib/libc++.1.dylib"));
    const objects = globSync("objects/*.o", { cwd: this.folder }).sort();
    await this.zig(
      ...["cc", "-target", TARGET, "-shared", "-o", "libmlxc.dylib", ...objects],
      ...["mlx/mlx/lib/libmlx.dylib", "libc++.tbd"],
      ...["-install_name", "@rpath/libmlxc.dylib", "-Wl,-rpath,@loader_path"],
      ...["-Wl,-dead_strip", "-s"],
    );
    return join(this.folder, "libmlxc.dylib");
  }
}

/** Also those of builds that were killed. The caller holds the lock. */
async function removeWorkshops(): Promise<void> {
  for (const folder of globSync(join(cacheFolder, "mac-build.*"))) {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Fails when libmlxc takes something that neither libmlx nor macOS 14 is known to have. */
function requireKnownSymbols(libmlxc: string, libmlx: string): void {
  const foreign = foreignSymbols(readMachO(readFileSync(libmlxc)), readMachO(readFileSync(libmlx)));
  if (foreign.length > 0) {
    throw new SetupError(
      `libmlxc for macOS takes what macOS 14 may not have: ${foreign.join(", ")}`,
    );
  }
}

function macSetKey(): string {
  const files = [...SOURCES, ...HEADERS].map((name) => join(native, name));
  const recipe = [
    "native.lock.json",
    "mac-native-set.ts",
    "licenses.ts",
    "macos-symbols.ts",
    "macos-symbols.txt",
  ];
  return contentKey(vendorFolder, [...files, ...recipe.map((name) => join(vendorFolder, name))]);
}

/** Makes sure that the folder that is returned holds the native set for a Mac. Throws SetupError when it cannot. */
export async function ensureMacNativeSet(): Promise<string> {
  const key = macSetKey();
  const folder = join(vendorFolder, "lib/darwin-arm64");
  if (isInstalled(folder, key)) return folder;
  await exclusively(
    join(cacheFolder, "mac-native.lock"),
    async () => {
      if (isInstalled(folder, key)) return;
      await removeWorkshops();
      const workshop = new Workshop();
      try {
        await workshop.furnish();
        await step("compiling libmlxc for macOS", (report) => workshop.compile(report));
        const libmlxc = await step("linking libmlxc for macOS", () => workshop.link());
        const libraries = join(workshop.mlxWheel, "mlx/lib");
        requireKnownSymbols(libmlxc, join(libraries, "libmlx.dylib"));
        await installFolder(folder, key, async (temporary) => {
          const files = [libmlxc, join(libraries, "libmlx.dylib"), join(libraries, "mlx.metallib")];
          for (const file of files) copyFileSync(file, join(temporary, basename(file)));
          copyLicenses({ mlx: workshop.mlxWheel, "mlx-c": workshop.mlxC }, temporary);
        });
      } finally {
        await removeWorkshops();
      }
    },
    () => say("waiting for another build of the native set for macOS …"),
  );
  return folder;
}
