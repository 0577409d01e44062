/** Folders named `<name>.tmp.<process>` until they are whole, of processes that were killed before. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "./thrown.ts";

/** A thread's own number and a word may follow the process's. */
const UNFINISHED = /^(.+)\.tmp\.(\d+)(?:\.\d+)?(?:\.old)?$/;

/**
 * Removes from `folder` what processes that live no more have left of the names that `isOurs` takes. Must run before
 * this process makes such a folder itself.
 */
export function removeLeftovers(folder: string, isOurs: (name: string) => boolean): void {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder)) {
    const [, name = "", pid] = UNFINISHED.exec(entry) ?? [];
    if (pid === undefined || !isOurs(name) || isAlive(Number(pid))) continue;
    rmSync(join(folder, entry), { recursive: true, force: true });
  }
}

/** A folder under our own number was left by a process that had it before. */
function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}
