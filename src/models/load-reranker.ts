import { basename } from "node:path";
import { readCheckpoint, type Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { ClassifierReranker } from "../pipeline/classifier-reranker.ts";
import type { Reranker } from "../pipeline/reranker.ts";
import { Tokenizer } from "../tokenizer/tokenizer.ts";
import { requireKnownActivation } from "./declared-activation.ts";
import { requireBothTexts, requireFittingTemplate } from "./fitting-template.ts";
import { loadYesNoReranker } from "./load-yes-no-reranker.ts";
import { maxLength } from "./max-length.ts";
import { openWeights, type WeightsPlacement } from "./open-weights.ts";
import { familyOf } from "./registry.ts";

interface RerankerOptions extends WeightsPlacement {
  readonly directory: string;
  /** Where the directory holds a LoRA adapter: the directory of its base model. */
  readonly base?: string | undefined;
  /** Can only lower the checkpoint's limit. */
  readonly maxLength?: number | undefined;
}

/**
 * Loads a cross-encoder, or a language model that judges by yes and no. The caller has opened the device. Throws
 * CheckpointError naming what cannot be used.
 */
export function loadReranker(options: RerankerOptions): Reranker {
  const checkpoint = readCheckpoint(options.directory, options.base);
  switch (kindOf(checkpoint)) {
    case "reranker":
      return loadClassifier(checkpoint, options);
    case "chat":
      return loadYesNoReranker(checkpoint, options);
    case "embedding":
      throw new CheckpointError(
        `${nameOf(checkpoint)} is an embedding model (${describe(checkpoint)}), not a reranker; give a cross-encoder, or let the embedding model rank by --rerank`,
      );
  }
}

function loadClassifier(checkpoint: Checkpoint, options: RerankerOptions): ClassifierReranker {
  const { config, limits } = checkpoint;
  const family = familyOf(checkpoint);
  if (!family.loadClassifier) {
    throw new CheckpointError(
      `config.json: ${describe(checkpoint)} is not supported as a reranker`,
    );
  }
  requireKnownActivation(config);
  const { weights, facts } = openWeights(checkpoint, family, options);
  const classifier = family.loadClassifier(config, weights);
  weights.close();
  const tokenizer = Tokenizer.of(checkpoint);
  const { pair } = tokenizer.templates;
  requireBothTexts(pair);
  requireFittingTemplate(pair, {
    vocabSize: classifier.vocabSize,
    typeCount: family.typeCount?.(config),
  });
  return new ClassifierReranker({
    name: nameOf(checkpoint),
    facts: {
      ...facts,
      family: family.modelType,
      maxLength: maxLength(limits, classifier, {
        flag: options.maxLength,
        specials: tokenizer.pairSpecials,
      }),
      vocabSize: classifier.vocabSize,
    },
    classifier,
    tokenizer,
  });
}

function nameOf({ directory }: Checkpoint): string {
  return basename(directory);
}

function describe({ modelType, architectures }: Checkpoint): string {
  return `model_type "${modelType}", architecture ${architectures[0] ?? "not stated"}`;
}
