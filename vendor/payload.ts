/** What an executable carries of the native set: the files, each compressed once and kept in the cache. */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { EmbeddedFile } from "../src/native/executable.ts";
import { cacheFolder } from "./pinned.ts";
import { SetupError } from "./setup-error.ts";

/** A file of the native set: its path inside the set and on this disk. */
export interface NativeFile {
  readonly name: string;
  readonly path: string;
}

/** Libraries that lie beside each other in a folder. */
export function librariesIn(folder: string): NativeFile[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
    .map(({ name }) => ({ name, path: join(folder, name) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * sharp's addon and libvips, in the layout in which the one finds the other. `modules` is a node_modules folder,
 * `platform` sharp's name of a system.
 */
export function sharpFiles(modules: string, platform: string): NativeFile[] {
  return [`sharp-${platform}/lib/*.node`, `sharp-libvips-${platform}/lib/libvips*`].map(
    (pattern) => {
      const [path, ...others] = globSync(join(modules, "@img", pattern));
      if (path === undefined || others.length > 0) {
        throw new SetupError(`node_modules/@img/${pattern} is not one file: run npm ci`);
      }
      return { name: pattern.replace(/[^/]*$/, basename(path)), path };
    },
  );
}

const LEVEL = 9;

/** Compresses the files of a set. */
export async function compressed(files: readonly NativeFile[]): Promise<EmbeddedFile[]> {
  const folder = join(cacheFolder, "payload");
  mkdirSync(folder, { recursive: true });
  return Promise.all(
    files.map(async ({ name, path }) => {
      const content = readFileSync(path);
      const sha256 = createHash("sha256").update(content).digest("hex");
      const target = join(folder, `${sha256}.${LEVEL}.zst`);
      if (!existsSync(target)) {
        const temporary = `${target}.tmp.${process.pid}`;
        await writeFile(temporary, Bun.zstdCompressSync(content, { level: LEVEL }));
        await rename(temporary, target);
      }
      return { name, path: target, bytes: content.length, sha256 };
    }),
  );
}

/** Name of a set, which changes with the names and contents of its files. */
export function setName(files: readonly EmbeddedFile[]): string {
  const hash = createHash("sha256");
  for (const { name, sha256 } of files) hash.update(`${name}\0${sha256}\n`);
  return `native-${hash.digest("hex").slice(0, 16)}`;
}
