/** The local store: `<owner>/<name>` directories, those that were downloaded and those that were put there. */
import {
  type Dirent,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { exclusively } from "./exclusive.ts";
import { ADAPTER_CONFIG } from "./file-names.ts";
import { filesBelow } from "./files-below.ts";
import { chooseGguf, ggufModels, matching, modelOfGguf } from "./gguf-choice.ts";
import { forgetUse } from "./last-use.ts";
import { readManifest } from "./manifest.ts";
import type { ModelName } from "./model-name.ts";

/** Of a checkpoint, of one whose files lie in folders, of an adapter. */
const CONFIG_FILES = ["config.json", "modules.json", ADAPTER_CONFIG];
const SHORTEST_COMMIT = 7;

/**
 * What a directory holds for a name: the directory itself where it is a checkpoint, else one of its GGUF files;
 * undefined where it does not have what is asked for.
 *
 * @throws Error one line, where its folders hold several models and none is named
 */
export function modelIn(directory: string, { gguf, text }: Pick<ModelName, "gguf" | "text">) {
  // Older sentence-transformers checkpoints keep all but modules.json in folders.
  if (gguf === undefined && isCheckpoint(directory)) return directory;
  const models = ggufsIn(directory);
  if (gguf === undefined) requireOneModel(directory, models, text);
  const fitting = gguf === undefined ? models : matching(models, gguf);
  return fitting.length === 0
    ? undefined
    : join(directory, chooseGguf(models, gguf, `model ${text}`));
}

/** Folders may hold the quantisations of one model, as many repositories are laid out, not several models. */
function requireOneModel(directory: string, ggufs: readonly string[], text: string): void {
  const inFolders = ggufs.filter((path) => path.includes("/"));
  if (inFolders.length === 0) return;
  const checkpoints = subdirectories(directory).filter((folder) =>
    isCheckpoint(join(directory, folder)),
  );
  const models = new Set([...ggufs.map(modelOfGguf), ...checkpoints]);
  if (models.size <= 1) return;
  const paths = [...ggufs, ...checkpoints].sort();
  const shown = paths.slice(0, SHOWN_MODELS).join(", ");
  const more = paths.length > SHOWN_MODELS ? ` and ${paths.length - SHOWN_MODELS} more` : "";
  throw new Error(
    `model ${text} holds several models: ${shown}${more}; name one, such as ${join(directory, paths[0] ?? "")}`,
  );
}

const SHOWN_MODELS = 3;

/**
 * The model in the store; undefined where it, or that revision of it, is not there.
 *
 * @throws Error where it is a link that leads nowhere
 */
export function storedModel(store: string, name: ModelName, revision: string | undefined) {
  const directory = join(store, name.repository);
  const fault = brokenLink(directory);
  if (fault !== undefined) {
    throw new Error(`model ${name.text}: ${fault}; mlxcel rm ${name.repository} removes the link`);
  }
  const isOwner = !name.repository.includes("/") && existsSync(directory) && !isAlone(directory);
  if (isOwner || !existsSync(directory)) return undefined;
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

/** Names, as `-m` takes them, of what the store holds, links that lead nowhere and what cannot be read included. */
export function storedModels(store: string): string[] {
  return entries(store)
    .flatMap((owner) =>
      isAlone(join(store, owner))
        ? [owner]
        : entries(join(store, owner)).map((name) => `${owner}/${name}`),
    )
    .filter((name) => isListed(join(store, name)))
    .sort();
}

/** The name of the stored model that a model's directory or GGUF file belongs to; undefined where it lies elsewhere. */
export function repositoryAt(store: string, model: string): string | undefined {
  const [owner = "", name] = relative(store, model).split(sep);
  if (owner === "" || owner === "..") return undefined;
  if (isAlone(join(store, owner))) return owner;
  return name === undefined ? undefined : `${owner}/${name}`;
}

/** What is wrong with a link that leads nowhere; undefined for all else. */
export function brokenLink(path: string): string | undefined {
  const target = linkTarget(path);
  if (target === undefined || existsSync(path)) return undefined;
  return `${path} is a link to ${target}, which is not there`;
}

/** Where a link leads, as it says itself; undefined for all else. */
export function linkTarget(path: string): string | undefined {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? readlinkSync(path) : undefined;
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
    if (owner !== store && linkTarget(owner) !== undefined) {
      throw new Error(
        `${owner} is a link to another place, where nothing is deleted; remove the link itself`,
      );
    }
    for (const path of [directory, partialDirectory(store, repository)]) {
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found) rmSync(path, { recursive: found.isDirectory() });
    }
    forgetUse(store, repository);
    if (owner !== store && readdirSync(owner).length === 0) rmdirSync(owner);
  });
}

/** Bytes of all files in a directory; 0 where there is none. */
export function sizeOf(directory: string): number {
  if (!existsSync(directory)) return 0;
  return filesBelow(directory).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

function isListed(path: string): boolean {
  if (brokenLink(path) !== undefined || isCheckpoint(path)) return true;
  try {
    return ggufsIn(path).length > 0;
  } catch {
    // whoever looks into it is told why it cannot be read
    return true;
  }
}

/** Whether a folder of the store is a model itself, not the owner of some, whose GGUF files lie in folders, too. */
function isAlone(folder: string): boolean {
  if (brokenLink(folder) !== undefined || isCheckpoint(folder)) return true;
  try {
    return statSync(folder).isDirectory() && ggufModels(readdirSync(folder)).length > 0;
  } catch {
    // it may have an owner's models or be one: nobody can tell
    return true;
  }
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
  return entries(directory).filter((name) => existsSync(join(directory, name)));
}

/** Directories, and links to one or to nowhere: users put models into the store by linking them. */
function entries(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith(".") && mayBeDirectory(directory, entry))
    .map(({ name }) => name);
}

function mayBeDirectory(parent: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  const path = join(parent, entry.name);
  return !existsSync(path) || statSync(path).isDirectory();
}
