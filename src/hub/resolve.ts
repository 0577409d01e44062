/** From the name of a model to its files on this machine. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { reasonOf } from "../native/thrown.ts";
import { adapterBase } from "./adapter-base.ts";
import { ggufFileAt } from "./gguf-file.ts";
import { cachedModel } from "./huggingface-cache.ts";
import { markUsed } from "./last-use.ts";
import { readManifest } from "./manifest.ts";
import { type ModelName, parseModelName } from "./model-name.ts";
import { localStore, type PlaceOptions, placesOf, storedToken } from "./places.ts";
import { pull, type PullOptions } from "./pull.ts";
import { notAtHand } from "./refusal.ts";
import { modelIn, repositoryAt, storedModel, storedModels } from "./store.ts";

/** Served when no flag names a model. */
export const DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2";

export interface FindOptions extends PlaceOptions {
  /** A branch, a tag or a commit; default: what is there, else main. */
  readonly revision?: string | undefined;
}

export interface ResolveOptions
  extends FindOptions, Pick<PullOptions, "token" | "listener" | "signal" | "firstPauseMs"> {
  /** Never use the network. */
  readonly offline: boolean;
}

export interface ResolvedModel {
  /** Absolute; a directory that holds a config.json, or a GGUF file. */
  readonly directory: string;
  /** The directory of the model that this one is a LoRA adapter of. */
  readonly base?: string | undefined;
  /** Last part of the path's or the repository's name: what answers call the model. */
  readonly id: string;
  /** As it was asked for; a repository's without a slash at the end. */
  readonly name: string;
}

/**
 * Finds a model on this machine, else downloads it to the local store.
 *
 * @throws Error one line: where it looked and what to do next
 */
export async function resolveModel(name: string, options: ResolveOptions): Promise<ResolvedModel> {
  return withBase(await foundOrDownloaded(name, options), options);
}

/** Finds the base of an adapter, too, else downloads it. */
async function withBase(model: ResolvedModel, options: ResolveOptions): Promise<ResolvedModel> {
  const base = adapterBase(model.directory);
  if (base === undefined) return model;
  try {
    const ofBase = { ...options, revision: base.revision };
    return { ...model, base: (await foundOrDownloaded(base.name, ofBase)).directory };
  } catch (error) {
    const reason = reasonOf(error);
    throw new Error(`${model.name} is an adapter of ${base.name}: ${reason}`, { cause: error });
  }
}

async function foundOrDownloaded(name: string, options: ResolveOptions): Promise<ResolvedModel> {
  const found = findAlone(name, options);
  if (found) return used(found, options);
  const wanted = repositoryName(name);
  const places = placesOf(options);
  if (options.offline || !wanted.repository.includes("/")) {
    throw notAtHand(wanted, places, options.offline ? options.env : undefined);
  }
  // another process may do it while this one waits for its turn
  await download(wanted, options, () => findAlone(name, options) !== undefined);
  const downloaded = findAlone(name, options);
  if (downloaded) return used(downloaded, options);
  throw goneAgain(wanted);
}

async function download(wanted: ModelName, options: ResolveOptions, isThere?: () => boolean) {
  const token = options.token ?? storedToken(options.env);
  await pull(wanted, { ...options, store: localStore(options), token }, isThere);
}

function goneAgain({ text }: ModelName): Error {
  return new Error(`model ${text} was downloaded but is gone from the store; try again`);
}

/**
 * Downloads a repository to the local store, or brings it up to date there. The base of an adapter is fetched where
 * it is not here yet.
 *
 * @throws Error one line that says what to do next
 */
export async function pullModel(name: string, options: ResolveOptions): Promise<ResolvedModel> {
  const wanted = parseModelName(name);
  if (!wanted?.repository.includes("/")) {
    throw new Error(`${name} cannot be downloaded: a repository is named <owner>/<name>`);
  }
  const places = placesOf(options);
  const present = storedModel(places.store, wanted, undefined);
  if (options.offline && present === undefined) throw notAtHand(wanted, places, options.env);
  const isFromElsewhere =
    present !== undefined && !readManifest(join(places.store, wanted.repository));
  if (options.offline) {
    options.listener.remark(`${wanted.text} is in the store; with --offline it is not compared`);
  } else if (isFromElsewhere) {
    options.listener.remark(
      `${wanted.text} is in the store from elsewhere and left as it is; to download it, run mlxcel rm ${wanted.repository} first`,
    );
  } else await download(wanted, options);
  const directory = storedModel(places.store, wanted, options.revision);
  if (directory === undefined) throw goneAgain(wanted);
  return withBase(asResolved(directory, wanted), options);
}

/**
 * Looks for `name` as a path, then in the local store and in the Hugging Face cache; undefined where it is a
 * repository that none of them has.
 *
 * @throws Error one line, where it can only be a path, and what is there is no model
 */
export function findModel(name: string, options: FindOptions): ResolvedModel | undefined {
  const model = findAlone(name, options);
  const base = model && adapterBase(model.directory);
  if (!model || !base) return model;
  const ofBase = { ...options, revision: base.revision };
  return { ...model, base: findAlone(base.name, ofBase)?.directory };
}

/** Without the base of an adapter. */
function findAlone(name: string, options: FindOptions): ResolvedModel | undefined {
  if (existsSync(name)) {
    const path = resolve(name);
    return { directory: pathOfModel(path, name), id: basename(path).replace(/\.gguf$/i, ""), name };
  }
  const { store, cache } = placesOf(options);
  const wanted = nameOfFolder(name, store) ?? repositoryName(name);
  const directory =
    storedModel(store, wanted, options.revision) ??
    cachedModel(cache, wanted, options.revision ?? "main");
  return directory === undefined ? undefined : asResolved(directory, wanted);
}

function asResolved(directory: string, { text, repository }: ModelName): ResolvedModel {
  return { directory, id: basename(repository), name: text };
}

function used(model: ResolvedModel, options: PlaceOptions): ResolvedModel {
  const store = localStore(options);
  const repository = repositoryAt(store, model.directory);
  if (repository !== undefined) markUsed(store, repository);
  return model;
}

/** The name of a folder of the store that is not called as the hub calls repositories; undefined for all else. */
function nameOfFolder(name: string, store: string): ModelName | undefined {
  const parsed = parseModelName(name);
  const isRepository = parsed !== undefined && parsed.gguf === undefined;
  if (isRepository || !storedModels(store).includes(name)) return undefined;
  return { text: name, repository: name, gguf: undefined };
}

function repositoryName(name: string): ModelName {
  const wanted = parseModelName(name);
  if (wanted) return wanted;
  throw new Error(`model ${name}: no such directory or file`);
}

/** The directory itself, or the GGUF file that it is or holds. */
function pathOfModel(path: string, name: string): string {
  const isDirectory = statSync(path).isDirectory();
  if (isDirectory) requireReadable(path, name);
  const file = ggufFileAt(path);
  if (file !== undefined) return file;
  if (!isDirectory) {
    throw new Error(
      `model ${name} is a file; name a .gguf file, or the directory that holds config.json and the weights`,
    );
  }
  const model = modelIn(path, { gguf: undefined, text: name });
  if (model !== undefined) return model;
  throw new Error(
    `model ${name}: no config.json; a checkpoint's directory holds one beside its weights`,
  );
}

function requireReadable(directory: string, name: string): void {
  try {
    readdirSync(directory);
  } catch (error) {
    const reason = reasonOf(error);
    throw new Error(`model ${name}: its directory cannot be read: ${reason}`, { cause: error });
  }
}
