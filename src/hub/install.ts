/** Puts the files of a download under their final name, all at once. */
import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Manifest, type StoredFile, writeManifest } from "./manifest.ts";

interface Installation {
  readonly manifest: Manifest;
  /** Where the model is to lie. */
  readonly directory: string;
  /** The directory of the download, which is deleted in the end. */
  readonly partial: string;
  /** Where the bytes of a file lie now. */
  readonly sourceOf: (file: StoredFile) => string;
}

/** What takes the place of the model while the new files move in. */
function previous(partial: string): string {
  return join(partial, "previous");
}

/** Undoes an exchange of directories that was broken off in the middle. */
export function recoverPrevious(partial: string, directory: string): void {
  if (existsSync(directory) || !existsSync(previous(partial))) return;
  renameSync(previous(partial), directory);
}

export function install({ manifest, directory, partial, sourceOf }: Installation): void {
  const tree = join(partial, "tree");
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree);
  for (const file of manifest.files) {
    const target = join(tree, file.path);
    mkdirSync(dirname(target), { recursive: true });
    linkOrCopy(sourceOf(file), target);
  }
  writeManifest(tree, manifest);
  if (existsSync(directory)) renameSync(directory, previous(partial));
  renameSync(tree, directory);
  rmSync(partial, { recursive: true });
}

function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target); // on file systems without hard links
  }
}
