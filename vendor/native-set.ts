import { copyFileSync, cpSync, globSync, mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { buildMlxC, ownToolchain, type Toolchain } from "./build.ts";
import { fetchCrate, fetchWheel, unpackCrate, unpackWheel } from "./download.ts";
import { exclusively } from "../src/hub/exclusive.ts";
import { copyLicenses } from "./licenses.ts";
import { installFolder, isInstalled } from "./install.ts";
import {
  cacheFolder,
  nativeSetKey,
  type PinnedPlatform,
  pinnedMlxC,
  pinnedPlatforms,
  vendorFolder,
} from "./pinned.ts";
import { say, step } from "./progress.ts";

// A folder per process: the compiler of a set-up that was killed may still write into its own.
const work = join(cacheFolder, `native-build.${process.pid}`);
const mlxC = join(work, "mlx-c");
const mlxWheel = join(work, "mlx");
const openblasWheel = join(work, "openblas");

async function removeBuilds(): Promise<void> {
  for (const build of globSync(join(cacheFolder, "native-build.*"))) {
    await rm(build, { recursive: true, force: true });
  }
}

async function fetchParts(platform: PinnedPlatform): Promise<void> {
  const crate = await fetchCrate(pinnedMlxC);
  const mlx = await fetchWheel(platform.mlx);
  const openblas = platform.openblas && (await fetchWheel(platform.openblas));
  await step("unpacking MLX and mlx-c", async () => {
    await unpackWheel(mlx, mlxWheel);
    if (openblas !== undefined) await unpackWheel(openblas, openblasWheel);
    await unpackCrate(crate, mlxC);
  });
}

/** Copies the library, what it loads, the licences, and the C headers that the symbol tables are checked with. */
function copySet(library: string, sources: string, folder: string): void {
  const siblings = library.endsWith(".dylib")
    ? ["mlx/lib/libmlx.dylib", "mlx/lib/mlx.metallib"].map((name) => join(mlxWheel, name))
    : [
        join(mlxWheel, "mlx/lib/libmlx.so"),
        ...globSync(join(mlxWheel, "mlx_cpu.libs/*")),
        join(openblasWheel, "scipy_openblas32/lib/libscipy_openblas.so"),
      ];
  for (const file of [library, ...siblings]) copyFileSync(file, join(folder, basename(file)));
  copyLicenses({ mlx: mlxWheel, openblas: openblasWheel, "mlx-c": sources }, folder);
  const headers = join(sources, "mlx/c");
  mkdirSync(join(folder, "include/mlx"), { recursive: true });
  cpSync(headers, join(folder, "include/mlx/c"), {
    recursive: true,
    filter: (path) => basename(path) !== "private" && (path.endsWith(".h") || path === headers),
  });
}

async function install(toolchain: Toolchain, folder: string, key: string): Promise<void> {
  // Say what is missing before, not after, the download.
  toolchain.requireTools();
  const platform = pinnedPlatforms[toolchain.platform];
  if (platform === undefined) throw new Error(`no pins for ${toolchain.platform}`);
  await fetchParts(platform);
  const sources = join(mlxC, pinnedMlxC.source);
  const library = await step(`compiling libmlxc for ${toolchain.platform}`, (report) =>
    buildMlxC(
      {
        mlxC: sources,
        mlx: join(mlxWheel, "mlx"),
        openblas: platform.openblas && join(openblasWheel, "scipy_openblas32/lib"),
      },
      toolchain,
      join(work, "build"),
      report,
    ),
  );
  await installFolder(folder, key, async (temporary) => {
    copySet(library, sources, temporary);
  });
}

/**
 * Makes sure that vendor/lib/<os>-<arch> holds the pinned native set for this machine; does nothing when it does or
 * when MLXCEL_MLXC_PATH names another libmlxc. Throws SetupError when it cannot.
 */
export async function ensureNativeSet(): Promise<void> {
  if (process.env["MLXCEL_MLXC_PATH"]) return;
  await ensureNativeSetBy(ownToolchain);
}

/** Makes sure that vendor/lib/<os>-<arch> holds the native set that `toolchain` makes. Throws SetupError when it cannot. */
export async function ensureNativeSetBy(toolchain: Toolchain): Promise<void> {
  const key = nativeSetKey();
  const folder = join(vendorFolder, "lib", toolchain.platform);
  if (isInstalled(folder, key)) return;
  await exclusively(
    join(cacheFolder, "native.lock"),
    async () => {
      if (isInstalled(folder, key)) return;
      await removeBuilds();
      try {
        await install(toolchain, folder, key);
      } finally {
        await removeBuilds();
      }
    },
    () => say("waiting for another set-up of the native set …"),
  );
}
