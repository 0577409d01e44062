import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Checkpoint } from "./checkpoint.ts";
import { readSafetensorsHeader } from "./safetensors-header.ts";

/** Where families keep the projection to labels, [labels, width]. */
const PROJECTIONS = ["classifier.weight", "classifier.out_proj.weight", "score.weight"];

/**
 * The labels of a classifier, by its tensors: config.json often lists labels that are not there. undefined where no
 * safetensors file has such a tensor.
 */
export function classifierLabels({ weightsDirectory, gguf }: Checkpoint): number | undefined {
  if (gguf) return undefined;
  const projections = readdirSync(weightsDirectory)
    .filter((name) => /^model.*\.safetensors$/.test(name))
    .map((name) => readSafetensorsHeader(join(weightsDirectory, name)))
    .flatMap((header) => PROJECTIONS.flatMap((name) => header.get(name) ?? []));
  return projections[0]?.shape[0];
}
