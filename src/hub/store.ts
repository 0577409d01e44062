/** The local store: `<owner>/<name>` directories, those that were downloaded and those that were put there. */
import {
  type Dirent,
  existsSync,
  lstatSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { exclusively } from "./exclusive.ts";
import { ADAPTER_CONFIG } from "./file-names.ts";
import { chooseGguf, ggufModels, matching } from "./gguf-choice.ts";
import { readManifest } from "./manifest.ts";
import type { ModelName } from "./model-name.ts";

/** Of a checkpoint, of one whose files lie in folders, of an adapter. */
const CONFIG_FILES = ["config.json", "modules.json", ADAPTER_CONFIG];
const SHORTEST_COMMIT = 7;

/**
 * What a directory holds for a name: the directory itself where it is a checkpoint, else one of its GGUF files;
 * undefined where it does not have what is asked for.
 */
export function modelIn(directory: string, { gguf, text }: Pick<ModelName, "gguf" | "text">) {
  // Older sentence-transformers checkpoints keep all but modules.json in folders.
  if (gguf === undefined && isCheckpoint(directory)) return directory;
  const models = ggufsIn(directory);
  const fitting = gguf === undefined ? models : matching(models, gguf);
  return fitting.length === 0
    ? undefined
    : join(directory, chooseGguf(models, gguf, `model ${text}`));
}

/** The model in the store; undefined where it, or that revision of it, is not there. */
export function storedModel(store: string, name: ModelName, revision: string | undefined) {
  const directory = join(store, name.repository);
  if (!existsSync(directory)) return undefined;
  if (revision !== undefined && !isRevision(directory, revision, name)) return undefined;
  return modelIn(directory, name);
}

function isRevision(directory: string, revision: string, { text }: ModelName): boolean {
  const manifest = readManifest(directory);
  if (!manifest) {
    throw new Error(
      `model ${text}: the store has it from elsewhere (${directory}), so its revision is not known; ` +
        "leave out --revision, or move that directory away",
    );
  }
  const isCommit = revision.length >= SHORTEST_COMMIT && manifest.commit.startsWith(revision);
  return manifest.revision === revision || isCommit;
}

/** Names, as `-m` takes them, of what the store holds. */
export function storedModels(store: string): string[] {
  const names: string[] = [];
  for (const owner of subdirectories(store)) {
    if (isModel(join(store, owner))) names.push(owner);
    for (const name of subdirectories(join(store, owner))) {
      if (isModel(join(store, owner, name))) names.push(`${owner}/${name}`);
    }
  }
  return names.sort();
}

/** Where the files of a download lie until it is complete. */
export function partialDirectory(store: string, repository: string): string {
  const directory = join(store, repository);
  return join(dirname(directory), `.${basename(directory)}.partial`);
}

/** Who holds its lock may change a repository in the store. */
export function lockFile(store: string, repository: string): string {
  return join(store, ".locks", `${repository.replace("/", "--")}.lock`);
}

/**
 * Deletes a model, a begun download included. A link in the store is deleted, not what it leads to.
 *
 * @throws Error one line, where a link above the model leads out of the store
 */
export async function removeStored(store: string, repository: string): Promise<void> {
  await exclusively(lockFile(store, repository), async () => {
    const directory = join(store, repository);
    const owner = dirname(directory);
    if (owner !== store && lstatSync(owner, { throwIfNoEntry: false })?.isSymbolicLink()) {
      throw new Error(
        `${owner} is a link to another place, where nothing is deleted; remove the link itself`,
      );
    }
    for (const path of [directory, partialDirectory(store, repository)]) {
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found) rmSync(path, { recursive: found.isDirectory() });
    }
    if (owner !== store && readdirSync(owner).length === 0) rmdirSync(owner);
  });
}

/** Bytes of all files in a directory. */
export function sizeOf(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false }))
    .reduce((sum, found) => sum + (found?.isFile() ? found.size : 0), 0);
}

function isModel(directory: string): boolean {
  return isCheckpoint(directory) || ggufsIn(directory).length > 0;
}

function isCheckpoint(directory: string): boolean {
  return CONFIG_FILES.some((file) => existsSync(join(directory, file)));
}

/** Paths of the GGUF files of a directory and of the folders in it. */
function ggufsIn(directory: string): string[] {
  const inFolders = subdirectories(directory).flatMap((folder) =>
    readdirSync(join(directory, folder)).map((name) => `${folder}/${name}`),
  );
  return ggufModels([...readdirSync(directory), ...inFolders]);
}

function subdirectories(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith(".") && isDirectory(directory, entry))
    .map(({ name }) => name);
}

/** Links followed: users put models into the store by linking them. */
function isDirectory(parent: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(join(parent, entry.name), { throwIfNoEntry: false })?.isDirectory() ?? false;
}
