/** When models of the store were last used: the time of an empty file for each, since the model's own may be another's. */
import { mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

function markOf(store: string, repository: string): string {
  return join(store, ".used", repository.replace("/", "--"));
}

/** Notes that the model is used now. */
export function markUsed(store: string, repository: string): void {
  const mark = markOf(store, repository);
  const now = new Date();
  try {
    mkdirSync(dirname(mark), { recursive: true });
    writeFileSync(mark, "");
    utimesSync(mark, now, now);
  } catch {
    // A store that belongs to somebody else can still be read from.
  }
}

/** undefined where no use is known. */
export function lastUsed(store: string, repository: string): Date | undefined {
  return statSync(markOf(store, repository), { throwIfNoEntry: false })?.mtime;
}

/** Whoever gets that name next is not used yet. */
export function forgetUse(store: string, repository: string): void {
  rmSync(markOf(store, repository), { force: true });
}
