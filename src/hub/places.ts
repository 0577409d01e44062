/** Where models and the token are looked for: the flags, the user's variables, the usual directories. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Environment } from "../native/environment.ts";
import { readText } from "./text-file.ts";

/** Where repositories are looked for. */
export interface Places {
  /** Holds `<owner>/<name>`. */
  readonly store: string;
  /** Holds `models--<owner>--<name>`. */
  readonly cache: string;
}

export interface PlaceOptions {
  /** Overrides where the local store is. */
  readonly modelsDir?: string | undefined;
  readonly env: Environment;
}

export function placesOf(options: PlaceOptions): Places {
  return { store: localStore(options), cache: huggingFaceCache(options.env) };
}

/** Where `<owner>/<name>` directories lie: the flag, else mlxcel/models in the user's cache directory. */
export function localStore({ modelsDir, env }: PlaceOptions): string {
  return resolve(modelsDir ?? join(userCache(env), "mlxcel", "models"));
}

/** The token that the hub's own command line has stored; undefined where there is none. */
export function storedToken(env: Environment): string | undefined {
  const path = env["HF_TOKEN_PATH"] || join(huggingFaceHome(env), "token");
  return readText(path)?.trim() || undefined;
}

/** The directory of huggingface_hub's cache, by the variables that it reads itself. */
function huggingFaceCache(env: Environment): string {
  return resolve(env["HF_HUB_CACHE"] || join(huggingFaceHome(env), "hub"));
}

function huggingFaceHome(env: Environment): string {
  return env["HF_HOME"] || join(userCache(env), "huggingface");
}

function userCache(env: Environment): string {
  return env["XDG_CACHE_HOME"] || join(env["HOME"] || homedir(), ".cache");
}
