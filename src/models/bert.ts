import { bertConfig, bertEncoder } from "./bert-encoder.ts";
import { denseClassifier } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";

/** BERT (Devlin et al. 2018). */
export const bert: ModelFamily = {
  modelType: "bert",
  publishedAs: "MiniLM, BGE v1.5, E5, GTE v1, Arctic Embed and many more",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["bert.", "model."],
  typeCount: (config) => parse(config).type_vocab_size,
  load: (config, weights) => bertEncoder(parse(config), weights),
  loadClassifier: (config, weights) =>
    denseClassifier(bertEncoder(parse(config), weights), weights),
};

const parse = (config: unknown) => parseConfig(bertConfig, config);
