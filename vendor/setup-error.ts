import { statfsSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { cacheFolder, vendorFolder } from "./pinned.ts";

/** A failure of the set-up that the user can act on: one line, shown without a stack trace. */
export class SetupError extends Error {}

const NEEDED_MB = 1500;
const DISK_FULL_TEXT = /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT|SQLITE_FULL/i;

/** Whether an error or the output of a command says that a disk is full. */
export function saysDiskFull(cause: unknown): boolean {
  if (typeof cause === "string") return DISK_FULL_TEXT.test(cause);
  if (!(cause instanceof Error)) return false;
  const code = "code" in cause ? String(cause.code) : "";
  return DISK_FULL_TEXT.test(code) || DISK_FULL_TEXT.test(cause.message);
}

/** The one line for a full disk; it names the fullest of the folders that a set-up writes to. */
export function diskFullError(...extraFolders: string[]): SetupError {
  const folders = [vendorFolder, cacheFolder, join(vendorFolder, "lib"), tmpdir(), homedir()];
  const volumes = [...folders, ...extraFolders].flatMap((folder) => {
    try {
      const { bavail, bsize } = statfsSync(folder);
      return [{ folder, freeMb: Math.floor((bavail * bsize) / 1e6) }];
    } catch {
      // A folder that does not exist yet cannot be the full one.
      return [];
    }
  });
  const fullest = volumes.sort((a, b) => a.freeMb - b.freeMb)[0];
  // What was half written is gone by now, so the full disk may look empty again: name a tight one only.
  const where =
    fullest === undefined || fullest.freeMb > NEEDED_MB
      ? ""
      : ` (${fullest.folder} has ${fullest.freeMb} MB left)`;
  return new SetupError(
    `the disk is full${where}: the set-up needs about 1.5 GB; free some space and run it again`,
  );
}
