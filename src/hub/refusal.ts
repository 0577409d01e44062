/** Why a name leads to no model, and what leads to one. */
import { readdirSync } from "node:fs";
import { basename } from "node:path";
import type { Environment } from "../native/environment.ts";
import { oneLine } from "../native/one-line.ts";
import type { ModelName } from "./model-name.ts";
import type { Places } from "./places.ts";
import { storedModels } from "./store.ts";

/** Variables that stand for --offline: the first that is set counts. */
const OFFLINE_VARIABLES = ["MLXCEL_OFFLINE", "LLAMA_ARG_OFFLINE", "HF_HUB_OFFLINE"];
const OFF = /^\s*(false|0|off|no|disabled)\s*$/i;

/**
 * The refusal of a name that is nowhere on this machine and is not downloaded.
 *
 * @param offline the variables where nothing may be downloaded, to name the one that says so
 */
export function notAtHand(
  wanted: ModelName,
  places: Places,
  offline: Environment | undefined,
): Error {
  const { store, cache } = places;
  const similar = namesake(wanted.repository, places);
  const suggestion = similar === undefined ? "" : `; did you mean ${oneLine(similar)}?`;
  const why = offline
    ? `${offlineAdvice(offline)} to download it`
    : "only names of the form <owner>/<name> are downloaded";
  return new Error(
    `model ${wanted.text} not found${suggestion}: no such directory, and neither the local store (${store}) nor the ` +
      `Hugging Face cache (${cache}) has it; ${why}`,
  );
}

function offlineAdvice(env: Environment): string {
  const name = OFFLINE_VARIABLES.find((variable) => (env[variable] ?? "").trim() !== "");
  const isOff = name === undefined || OFF.test(env[name] ?? "");
  return isOff ? "leave --offline out" : `unset ${name}`;
}

/** A repository at hand with the same last part, such as `<owner>/<name>` for the id that answers carry. */
function namesake(name: string, { store, cache }: Places): string | undefined {
  const wanted = basename(name).toLowerCase();
  const cached = entries(cache)
    .filter((directory) => directory.startsWith("models--"))
    .map((directory) => directory.slice("models--".length).replace("--", "/"));
  return [...storedModels(store), ...cached].find(
    (each) => basename(each).toLowerCase() === wanted,
  );
}

/** Of a directory; none for anything else, and for what may not be read: this only looks for a suggestion. */
function entries(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
