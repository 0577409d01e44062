import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { bert } from "./bert.ts";
import type { ModelFamily } from "./family.ts";

const families: readonly ModelFamily[] = [bert];

/** The family of a checkpoint's `model_type`. Throws CheckpointError listing the known ones for any other. */
export function familyOf(checkpoint: Checkpoint): ModelFamily {
  const family = families.find(({ modelType }) => modelType === checkpoint.modelType);
  if (family) return family;
  const known = families.map(({ modelType }) => modelType).join(", ");
  throw new CheckpointError(
    `config.json: model_type "${checkpoint.modelType}" is not supported (known: ${known})`,
  );
}
