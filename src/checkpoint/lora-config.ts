import { join } from "node:path";
import { z } from "zod";
import { ADAPTER_CONFIG } from "../hub/file-names.ts";
import { CheckpointError } from "./error.ts";
import { readJson } from "./json-file.ts";
import { isFile, statOf } from "./regular-file.ts";

/** Whether a directory holds an adapter of another model instead of a whole one; a GGUF file is none. */
export function isAdapter(path: string): boolean {
  return statOf(path)?.isDirectory() === true && isFile(join(path, ADAPTER_CONFIG));
}

/** Numbers by the end of the names of the layers that they are for. */
const pattern = z.record(z.string(), z.number().positive()).nullish();

const configFile = z.looseObject({
  peft_type: z.literal("LORA"),
  lora_alpha: z.number().positive(),
  alpha_pattern: pattern,
  use_rslora: z.boolean().default(false),
  use_dora: z.boolean().default(false),
  task_type: z.string().nullish(),
  /** Names of other ways to begin alter the weights of the base, too. */
  init_lora_weights: z
    .union([z.boolean(), z.enum(["gaussian", "eva", "orthogonal"])])
    .default(true),
});

type LoraConfigFile = z.output<typeof configFile>;

/** Keys that say how the adapter was trained, or what its tensors say themselves. */
const WITHOUT_EFFECT = new Set([
  ...["auto_mapping", "base_model_name_or_path", "bias", "ensure_weight_tying", "eva_config"],
  ...["exclude_modules", "inference_mode", "layers_pattern", "layers_to_transform", "lora_dropout"],
  ...["megatron_core", "modules_to_save", "peft_version", "qalora_group_size", "r", "rank_pattern"],
  ...["revision", "runtime_config", "target_modules"],
]);

export interface LoraSettings {
  /** DoRA (Liu et al. 2024): the adapted rows get lengths of their own. */
  readonly usesDora: boolean;
  /** It was trained with the head of a classifier. */
  readonly isForClassifier: boolean;
  /** Factor on B·A of a layer with this rank. */
  scale(layer: string, rank: number): number;
}

/**
 * Reads adapter_config.json of peft. Throws CheckpointError naming a setting that is unknown, or that would change the
 * numbers in another way than LoRA (Hu et al. 2021).
 */
export function readLoraConfig(directory: string): LoraSettings {
  const path = join(directory, ADAPTER_CONFIG);
  const file = readJson(path, configFile);
  const handled = new Set([...Object.keys(configFile.shape), ...WITHOUT_EFFECT]);
  const unknown = Object.entries(file).find(([key, value]) => !handled.has(key) && !isOff(value));
  if (unknown) {
    throw new CheckpointError(
      `${path}: "${unknown[0]}" is not supported; merge the adapter into its base with peft`,
    );
  }
  return {
    usesDora: file.use_dora,
    isForClassifier: file.task_type === "SEQ_CLS",
    scale: (layer, rank) => alphaOf(file, layer) / (file.use_rslora ? Math.sqrt(rank) : rank),
  };
}

/** Null, false and what is empty leave a setting of peft without effect. */
function isOff(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  return value === null || value === false || value === "";
}

/** The first key counts that is the end of the layer's name, in whole parts. peft takes keys for regular expressions. */
function alphaOf({ lora_alpha, alpha_pattern }: LoraConfigFile, layer: string): number {
  const own = Object.entries(alpha_pattern ?? {}).find(([key]) =>
    new RegExp(`(^|\\.)(${key})$`).test(layer),
  );
  return own?.[1] ?? lora_alpha;
}
