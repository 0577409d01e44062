import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Encoder } from "../nn/encoder.ts";
import { linear } from "../nn/linear.ts";
import { bertConfig, bertEncoder } from "./bert-encoder.ts";
import { classifier, oneLabel } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { positionsAfterPadding } from "./padding-positions.ts";

/** RoBERTa (Liu et al. 2019): BERT whose positions count from behind the padding id. */
export const roberta: ModelFamily = {
  modelType: "roberta",
  defaultPooling: "mean",
  weightPrefixes: ["roberta.", "model."],
  typeCount: (config) => parse(config).type_vocab_size,
  load: loadEncoder,
  loadClassifier(config, weights) {
    const encoder = loadEncoder(config, weights);
    const width = encoder.hiddenSize;
    const dense = linear(weights, "classifier.dense", {
      inputs: width,
      outputs: width,
      bias: true,
    });
    return classifier(encoder, {
      pooling: "cls",
      transform: (pooled) => mx.tanh(dense(pooled)),
      projection: oneLabel(weights, "classifier.out_proj", { inputs: width, bias: true }),
    });
  },
};

const paddingConfig = z.object({ pad_token_id: z.int().nonnegative().default(1) });

function loadEncoder(config: unknown, weights: Weights): Encoder {
  const { pad_token_id: padId } = parseConfig(paddingConfig, config, "config.json");
  return bertEncoder(parse(config), weights, {
    first: padId + 1,
    rule: (batch) => positionsAfterPadding(batch, padId),
  });
}

const parse = (config: unknown) => parseConfig(bertConfig, config, "config.json");
