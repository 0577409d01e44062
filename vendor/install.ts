import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

// Written last, inside the folder, before the folder gets its name: no stamp, no use.
const STAMP = ".mlxcel-stamp";

/** Whether `folder` was installed whole from what `key` stands for. */
export function isInstalled(folder: string, key: string): boolean {
  const stamp = join(folder, STAMP);
  return existsSync(stamp) && readFileSync(stamp, "utf8") === key;
}

/** Marks a folder as whole. */
export async function writeStamp(folder: string, key: string): Promise<void> {
  await writeFile(join(folder, STAMP), key);
}

/**
 * Fills a new folder beside `folder` and lets it take that name only when it is whole.
 * The caller holds the lock of `folder`; what interrupted installs left is removed.
 */
export async function installFolder(
  folder: string,
  key: string,
  fill: (temporary: string) => Promise<void>,
): Promise<void> {
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true });
  const leftover = `${basename(folder)}.tmp.`;
  for (const name of await readdir(parent)) {
    if (name.startsWith(leftover)) await rm(join(parent, name), { recursive: true, force: true });
  }
  const temporary = `${folder}.tmp.${process.pid}`;
  const old = `${folder}.tmp.${process.pid}.old`;
  try {
    mkdirSync(temporary);
    await fill(temporary);
    await writeStamp(temporary, key);
    // A rename cannot replace a folder that has files; the server that runs keeps its open ones.
    if (existsSync(folder)) await rename(folder, old);
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
  }
}
