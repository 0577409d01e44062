/** Why a name leads to no model, and what leads to one. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Places } from "./resolve.ts";

/** A repository with a quantisation behind a colon: `owner/name:Q8_0`. */
const QUANTIZATION_TAG = /^[^/:]+\/[^/:]+:[\w.-]+$/;

/** The refusal of a name that asks for one of a repository's GGUF files; undefined for any other. */
export function tagRefusal(name: string): Error | undefined {
  if (!QUANTIZATION_TAG.test(name)) return undefined;
  return new Error(
    `model ${name}: quantisations are not looked up in this version; name the .gguf file itself`,
  );
}

/** @param name `<owner>/<name>` or `<name>` */
export function notFound(name: string, places: Places): Error {
  const { store, cache } = places;
  const similar = namesake(name, places);
  const suggestion = similar === undefined ? "" : `; did you mean ${similar}?`;
  const repository = name.includes("/") ? name : `OWNER/${name}`;
  return new Error(
    `model ${name} not found${suggestion}: no such directory, and neither the local store (${store}) nor the ` +
      `Hugging Face cache (${cache}) has it; this version does not download models: give -m a directory that holds ` +
      `its files, or run hf download ${repository} --local-dir ${join(store, repository)}`,
  );
}

/** A repository at hand with the same last part, such as `<owner>/<name>` for the id that answers carry. */
function namesake(name: string, { store, cache }: Places): string | undefined {
  const wanted = basename(name).toLowerCase();
  const stored = entries(store).flatMap((owner) =>
    entries(join(store, owner)).map((each) => `${owner}/${each}`),
  );
  const cached = entries(cache)
    .filter((directory) => directory.startsWith("models--"))
    .map((directory) => directory.slice("models--".length).replace("--", "/"));
  return [...stored, ...cached].find((each) => basename(each).toLowerCase() === wanted);
}

/** Of a directory; none for anything else, and for what may not be read: this only looks for a suggestion. */
function entries(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
