import { basename } from "node:path";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { EmbeddingModel } from "../pipeline/embedder.ts";
import { loadModuleChain } from "../pipeline/modules.ts";
import type { NormalizeMode } from "../pipeline/normalize.ts";
import type { PoolingMode } from "../pipeline/pooling.ts";
import { Tokenizer } from "../tokenizer/tokenizer.ts";
import { requireFittingTemplate } from "./fitting-template.ts";
import { loadLateInteraction } from "./load-late-interaction.ts";
import { instructionPromptOf } from "./instruction-prompt.ts";
import { maxLength } from "./max-length.ts";
import { computeDtypeOn, openWeights, type WeightsPlacement } from "./open-weights.ts";
import { familyOf } from "./registry.ts";

export interface EmbedderOptions extends WeightsPlacement {
  readonly directory: string;
  /** Where the directory holds a LoRA adapter: the directory of its base model. */
  readonly base?: string | undefined;
  /** Overrides the checkpoint's pooling. */
  readonly pooling?: keyof typeof poolingFlag | undefined;
  /** Can only lower the checkpoint's limit. */
  readonly maxLength?: number | undefined;
  /** Overrides what the checkpoint's modules do. */
  readonly normalize?: NormalizeMode | undefined;
}

const poolingFlag = {
  mean: "mean",
  cls: "cls",
  last: "lasttoken",
  max: "max",
} as const satisfies Record<string, PoolingMode>;

/** Loads an embedder. The caller has opened the device. Throws CheckpointError naming what cannot be used. */
export function loadEmbeddingModel(options: EmbedderOptions): EmbeddingModel {
  const { directory, device, normalize } = options;
  const checkpoint = readCheckpoint(directory, options.base);
  const { prompts, defaultPromptName } = checkpoint;
  const family = familyOf(checkpoint);
  const { weights, facts } = openWeights(checkpoint, family, options);
  const encoder = family.load(checkpoint.config, weights);
  weights.close();
  const tokenizer = Tokenizer.of(checkpoint);
  requireFittingTemplate(tokenizer.templates.single, {
    vocabSize: encoder.vocabSize,
    typeCount: family.typeCount?.(checkpoint.config),
  });
  const lateInteraction = loadLateInteraction(checkpoint, {
    tokenizer,
    encoder,
    maxLength: options.maxLength,
  });
  return new EmbeddingModel({
    name: basename(directory),
    facts: {
      ...facts,
      family: family.modelType,
      maxLength:
        lateInteraction?.limits.document ??
        maxLength(checkpoint.limits, encoder, {
          flag: options.maxLength,
          specials: tokenizer.singleSpecials,
        }),
      vocabSize: encoder.vocabSize,
    },
    encoder,
    chain: loadModuleChain(checkpoint, {
      computeDtype: computeDtypeOn(device),
      hiddenSize: encoder.hiddenSize,
      defaultPooling: family.defaultPooling,
      pooling: options.pooling && poolingFlag[options.pooling],
    }),
    tokenizer,
    prompts: {
      prompts,
      defaultPromptName,
      instructionPrompt: instructionPromptOf(family.instructionPrompt, prompts),
    },
    lateInteraction,
    normalize,
  });
}
