/** The cache of huggingface_hub, which is read and never written. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { filesBelow } from "./files-below.ts";
import type { ModelName } from "./model-name.ts";
import { modelIn } from "./store.ts";
import { readText } from "./text-file.ts";

/**
 * The model in the snapshot that a branch or tag pointed to when the repository was last downloaded, or in that of a
 * commit; undefined where it is not there, or without its weights: many programs fetch the tokenizer alone.
 */
export function cachedModel(cache: string, name: ModelName, revision: string): string | undefined {
  const directory = join(cache, `models--${name.repository.replaceAll("/", "--")}`);
  const ref = join(directory, "refs", revision);
  const commit = readText(ref)?.trim() ?? revision;
  const snapshot = join(directory, "snapshots", commit);
  if (!existsSync(snapshot)) return undefined;
  const model = modelIn(snapshot, name);
  return model === snapshot && !hasWeights(snapshot) ? undefined : model;
}

/** Whether there are weights, in folders too; of weights in parts, whether all are there. */
function hasWeights(snapshot: string): boolean {
  const files = filesBelow(snapshot)
    .map(({ path }) => path)
    .filter((path) => path.endsWith(".safetensors"));
  const [, parts] = files.map((path) => /-of-(\d+)\.safetensors$/.exec(path)).find(Boolean) ?? [];
  return files.length >= Math.max(1, Number(parts ?? 1));
}
