/** Which files of a repository a model needs: not its exports to other runtimes, its pictures or its training logs. */
import { z } from "zod";
import {
  ADAPTER_CONFIG,
  ADAPTER_WEIGHTS,
  POOLING_FOLDER,
  SINGLE_WEIGHTS,
  WEIGHTS_INDEX,
} from "./file-names.ts";
import { chooseGguf, ggufModels } from "./gguf-choice.ts";
import { jsonOf } from "./json-text.ts";
import type { StoredFile } from "./manifest.ts";
import { isSafePath } from "./model-name.ts";

/** Taken from the repository itself and from each folder of its modules. */
const NEEDED = new Set([
  "config.json",
  "modules.json",
  "config_sentence_transformers.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "chat_template.jinja",
  "chat_template.json",
  "generation_config.json",
  "preprocessor_config.json",
  "processor_config.json",
  ADAPTER_CONFIG,
  ADAPTER_WEIGHTS,
  "artifact.metadata",
]);
const SENTENCE_CONFIG = /^sentence_[\w-]+_config\.json$/;

const SHARD = /^model-\d{5}-of-\d{5}\.safetensors$/;
const PICKLE = /^(pytorch_model.*|model)\.(bin|pt|pth)$/;

/** Older vocabularies, for a folder without tokenizer.json. */
const VOCABULARY = /^(vocab\.(txt|json)|merges\.txt|(spiece|tokenizer|sentencepiece\.bpe)\.model)$/;

const modulesFile = z.array(z.looseObject({ path: z.string().default("") }));

/** Paths of the module folders, from the text of modules.json. Throws Error where one leads out of the repository. */
export function moduleFolders(modulesJson: string, repository: string): string[] {
  const parsed = modulesFile.safeParse(jsonOf(modulesJson));
  if (!parsed.success) throw new Error(`model ${repository}: its modules.json lists no modules`);
  const folders = parsed.data
    .map(({ path }) => path.replace(/\/+$/, ""))
    .filter((path) => path !== "");
  const odd = folders.find((path) => !isSafePath(path));
  if (odd === undefined) return folders;
  throw new Error(
    `model ${repository}: its modules.json names the folder ${JSON.stringify(odd)}, which is not inside the repository`,
  );
}

/**
 * The files of a checkpoint.
 *
 * @param folders of its modules
 * @throws Error one line, where the repository holds no weights that can be read
 */
export function checkpointFiles(
  listed: readonly StoredFile[],
  folders: readonly string[],
  repository: string,
): StoredFile[] {
  const groups = [...new Set(["", ...folders, POOLING_FOLDER])].map((folder) =>
    filesOf(listed, folder),
  );
  const chosen = groups.flatMap((group) => neededOf(group));
  const pickled = groups.find((group) => !group.some(isWeights) && group.some(isPickle));
  if (pickled) {
    const path = pickled.find(isPickle)?.path;
    throw new Error(
      `model ${repository} has ${path}, a pickle file, which is not read because loading it can run code, ` +
        "and no model.safetensors beside it: look for a conversion to safetensors on the hub",
    );
  }
  if (!groups.some((group) => group.some(isWeights))) {
    throw new Error(
      `model ${repository} has no model.safetensors and no GGUF file: nothing to load`,
    );
  }
  return chosen;
}

/** The GGUF file that is meant, or undefined where the repository is to be read as a checkpoint. */
export function ggufFile(
  listed: readonly StoredFile[],
  wanted: string | undefined,
  repository: string,
): StoredFile | undefined {
  const paths = listed.map(({ path }) => path).filter(isSafePath);
  const isCheckpoint = paths.includes("modules.json") || paths.includes("config.json");
  const hasWeights = filesOf(listed, "").some(isWeights) || paths.includes("modules.json");
  if (wanted === undefined && (ggufModels(paths).length === 0 || (isCheckpoint && hasWeights))) {
    return undefined;
  }
  const chosen = chooseGguf(paths, wanted, `model ${repository}`);
  return listed.find(({ path }) => path === chosen);
}

/** A file with its name inside its folder. */
interface FolderFile extends StoredFile {
  readonly name: string;
}

function filesOf(listed: readonly StoredFile[], folder: string): FolderFile[] {
  const prefix = folder === "" ? "" : `${folder}/`;
  return listed
    .filter(({ path }) => path.startsWith(prefix) && !path.slice(prefix.length).includes("/"))
    .map((file) => ({ ...file, name: file.path.slice(prefix.length) }));
}

function neededOf(group: readonly FolderFile[]): StoredFile[] {
  const has = (name: string) => group.some((file) => file.name === name);
  const isNeeded = ({ name }: FolderFile) =>
    NEEDED.has(name) ||
    SENTENCE_CONFIG.test(name) ||
    name === SINGLE_WEIGHTS ||
    (isOfShards(name) && !has(SINGLE_WEIGHTS)) ||
    (VOCABULARY.test(name) && !has("tokenizer.json"));
  return group.filter(isNeeded).map(({ path, sizeBytes, oid }) => ({ path, sizeBytes, oid }));
}

function isWeights({ name }: FolderFile): boolean {
  return name === SINGLE_WEIGHTS || name === ADAPTER_WEIGHTS || isOfShards(name);
}

function isOfShards(name: string): boolean {
  return name === WEIGHTS_INDEX || SHARD.test(name);
}

function isPickle({ name }: FolderFile): boolean {
  return PICKLE.test(name);
}
