import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

interface FoundFile {
  /** Below the directory, with `/` between its parts. */
  readonly path: string;
  readonly sizeBytes: number;
}

/**
 * The files of a directory and of the folders in it. A link to a file is the file, as in the Hugging Face cache; one to
 * a folder is not followed, for it may lead round in a circle or out of the directory.
 */
export function filesBelow(directory: string): FoundFile[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      return filesBelow(path).map((file) => ({ ...file, path: `${entry.name}/${file.path}` }));
    }
    const found = existsSync(path) ? statSync(path, { throwIfNoEntry: false }) : undefined;
    return found?.isFile() ? [{ path: entry.name, sizeBytes: found.size }] : [];
  });
}
