import { z } from "zod";
import type { Weights } from "../checkpoint/weights.ts";
import type { Encoder } from "../nn/encoder.ts";
import { bertConfig, bertEncoder } from "./bert-encoder.ts";
import { denseClassifier } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { positionsAfterPadding } from "./padding-positions.ts";

/** RoBERTa (Liu et al. 2019): BERT whose positions count from behind the padding id. */
export const roberta: ModelFamily = {
  modelType: "roberta",
  publishedAs: "all-distilroberta, all-roberta-large, cross-encoders",
  lengthLimit: "max_position_embeddings, less pad_token_id + 1",
  defaultPooling: "mean",
  weightPrefixes: ["roberta.", "model."],
  typeCount: (config) => parse(config).type_vocab_size,
  load: loadEncoder,
  loadClassifier: (config, weights) =>
    denseClassifier(loadEncoder(config, weights), weights, {
      dense: "classifier.dense",
      projection: "classifier.out_proj",
    }),
};

const ownConfig = z.object({
  pad_token_id: z.int().nonnegative().default(1),
  /** Of the original files of Jina Embeddings v3, which call themselves xlm-roberta. */
  lora_adaptations: z.null("adapters for tasks inside of the network are not supported").optional(),
});

function loadEncoder(config: unknown, weights: Weights): Encoder {
  const { pad_token_id: padId } = parseConfig(ownConfig, config);
  return bertEncoder(parse(config), weights, {
    first: padId + 1,
    rule: (batch) => positionsAfterPadding(batch, padId),
  });
}

const parse = (config: unknown) => parseConfig(bertConfig, config);
