/** From the name of a model to the directory of its checkpoint, or to its GGUF file. Nothing here writes or uses the network. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import { ggufFileAt } from "./gguf-file.ts";
import { tagRefusal, notFound } from "./refusal.ts";

/** Served when no flag names a model. */
export const DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2";

export interface ResolveOptions {
  /** Overrides where the local store is. */
  readonly modelsDir?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ResolvedModel {
  /** Absolute; holds a config.json, or is a GGUF file. */
  readonly directory: string;
  /** Last part of the directory's, the file's or the repository's name: what answers call the model. */
  readonly id: string;
  /** As it was asked for; a repository's without a slash at the end. */
  readonly name: string;
}

/** Where repositories are looked for. */
export interface Places {
  /** Holds `<owner>/<name>`. */
  readonly store: string;
  /** Holds `models--<owner>--<name>`. */
  readonly cache: string;
}

/**
 * Looks for `name` as a path, then as `<owner>/<name>` in the local store and in the Hugging Face cache.
 *
 * @throws Error one line: where it looked and what to do next
 */
export function resolveModel(name: string, options: ResolveOptions): ResolvedModel {
  if (existsSync(name)) {
    const directory = resolve(name);
    return {
      directory: checkpointPath(directory, name),
      id: basename(directory).replace(/\.gguf$/i, ""),
      name,
    };
  }
  const repository = name.replace(/\/+$/, "");
  const refusal = tagRefusal(repository);
  if (refusal) throw refusal;
  if (looksLikePath(repository)) throw new Error(`model ${name}: no such directory or file`);

  const places = { store: localStore(options), cache: huggingFaceCache(options.env) };
  const stored = join(places.store, repository);
  const directory = existsSync(stored) ? stored : cachedSnapshot(places.cache, repository);
  if (directory === undefined) throw notFound(repository, places);
  return {
    directory: checkpointPath(directory, repository),
    id: basename(repository),
    name: repository,
  };
}

/** Where `<owner>/<name>` directories lie: the flag, else mlxcel/models in the user's cache directory. */
export function localStore({ modelsDir, env }: ResolveOptions): string {
  return resolve(modelsDir ?? join(userCache(env), "mlxcel", "models"));
}

/** The directory of huggingface_hub's cache, by the variables that it reads itself. */
function huggingFaceCache(env: ResolveOptions["env"]): string {
  const home = env["HF_HOME"] || join(userCache(env), "huggingface");
  return resolve(env["HF_HUB_CACHE"] || join(home, "hub"));
}

function userCache(env: ResolveOptions["env"]): string {
  return env["XDG_CACHE_HOME"] || join(env["HOME"] || homedir(), ".cache");
}

/** The snapshot that the branch `main` pointed to when the repository was last downloaded. */
function cachedSnapshot(cache: string, name: string): string | undefined {
  const repository = join(cache, `models--${name.replaceAll("/", "--")}`);
  const main = join(repository, "refs", "main");
  if (!existsSync(main)) return undefined;
  const snapshot = join(repository, "snapshots", readFileSync(main, "utf8").trim());
  return existsSync(snapshot) ? snapshot : undefined;
}

/** A repository is `<name>` or `<owner>/<name>`; everything else can only be a path. */
function looksLikePath(name: string): boolean {
  return (
    isAbsolute(name) ||
    /^[.~]|\.gguf$/i.test(name) ||
    name.includes("\\") ||
    name.split("/").length > 2
  );
}

/** The directory itself, or the GGUF file that it is or holds. */
function checkpointPath(directory: string, name: string): string {
  const file = ggufFileAt(directory);
  if (file !== undefined) return file;
  if (!statSync(directory).isDirectory()) {
    throw new Error(
      `model ${name} is a file; name a .gguf file, or the directory that holds config.json and the weights`,
    );
  }
  const names = namesIn(directory, name);
  // Older sentence-transformers checkpoints keep all but modules.json in folders.
  if (!names.includes("config.json") && !names.includes("modules.json")) {
    const where = directory === resolve(name) ? "" : ` in ${directory}`;
    throw new Error(
      `model ${name}: no config.json${where}; a checkpoint's directory holds one beside its weights`,
    );
  }
  return directory;
}

function namesIn(directory: string, name: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`model ${name}: its directory cannot be read: ${reason}`, { cause: error });
  }
}
