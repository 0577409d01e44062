import { Database, SQLiteError } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

const RETRY_MS = 200;

function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code === "SQLITE_BUSY";
}

/**
 * Runs `work` while no other process runs work under the same lock file; waits for its turn.
 * The lock is SQLite's lock on an empty database: the kernel holds it and drops it when the process
 * ends in whatever way, so that a stale lock cannot exist.
 */
export async function exclusively<T>(
  lockFile: string,
  work: () => Promise<T>,
  onWait?: () => void,
): Promise<T> {
  mkdirSync(dirname(lockFile), { recursive: true });
  using database = new Database(lockFile);
  for (let waited = false; ; waited = true) {
    try {
      // Nothing is ever written, so no journal file is wanted either.
      database.run("PRAGMA journal_mode = MEMORY");
      database.run("BEGIN EXCLUSIVE");
      break;
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (!waited) onWait?.();
      await Bun.sleep(RETRY_MS);
    }
  }
  try {
    return await work();
  } finally {
    database.run("ROLLBACK");
  }
}
