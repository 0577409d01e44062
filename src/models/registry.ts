import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { bert } from "./bert.ts";
import { distilbert } from "./distilbert.ts";
import type { ModelFamily } from "./family.ts";
import { modernbert } from "./modernbert.ts";
import { mpnet } from "./mpnet.ts";
import { qwen3 } from "./qwen3.ts";
import { roberta } from "./roberta.ts";
import { xlmRoberta } from "./xlm_roberta.ts";

const families: readonly ModelFamily[] = [
  bert,
  roberta,
  xlmRoberta,
  distilbert,
  mpnet,
  modernbert,
  qwen3,
];

/** The family of a checkpoint's `model_type`. Throws CheckpointError listing the known ones for any other. */
export function familyOf(checkpoint: Checkpoint): ModelFamily {
  const family = families.find(({ modelType }) => modelType === checkpoint.modelType);
  if (family) return family;
  const known = families.map(({ modelType }) => modelType).join(", ");
  throw new CheckpointError(
    `config.json: model_type "${checkpoint.modelType}" is not supported (known: ${known})`,
  );
}
