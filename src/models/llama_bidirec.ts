import { z } from "zod";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { loadLlama } from "./llama.ts";

const configSchema = z.looseObject({
  architectures: z.tuple([z.literal("LlamaBidirectionalModel")]).nullish(),
  is_causal: z.literal(false).nullish(),
  /** What the published code does where no module chain says otherwise. */
  pooling: z.literal("avg").nullish(),
});

/** NVIDIA's retrievers: Llama whose tokens see the whole text. */
export const llamaBidirec: ModelFamily = {
  modelType: "llama_bidirec",
  publishedAs: "NVIDIA's Llama retrievers",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["model."],
  load(config, weights) {
    parseConfig(configSchema, config);
    return loadLlama(config, weights, { kind: "full" });
  },
};
