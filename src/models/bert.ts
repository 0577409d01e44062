import * as mx from "../../ffi/index.ts";
import { linear } from "../nn/linear.ts";
import { bertConfig, bertEncoder } from "./bert-encoder.ts";
import { classifier, oneLabel } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";

/** BERT (Devlin et al. 2018). */
export const bert: ModelFamily = {
  modelType: "bert",
  defaultPooling: "mean",
  weightPrefixes: ["bert.", "model."],
  typeCount: (config) => parse(config).type_vocab_size,
  load: (config, weights) => bertEncoder(parse(config), weights),
  loadClassifier(config, weights) {
    const parsed = parse(config);
    const width = parsed.hidden_size;
    const dense = linear(weights, "pooler.dense", { inputs: width, outputs: width, bias: true });
    return classifier(bertEncoder(parsed, weights), {
      pooling: "cls",
      transform: (pooled) => mx.tanh(dense(pooled)),
      projection: oneLabel(weights, "classifier", { inputs: width, bias: true }),
    });
  },
};

const parse = (config: unknown) => parseConfig(bertConfig, config, "config.json");
