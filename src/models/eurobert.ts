import { z } from "zod";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { fullAttentionOnly } from "./llama-config.ts";
import { loadLlama } from "./llama.ts";

const configSchema = z.looseObject({ ...fullAttentionOnly, clip_qkv: z.null().optional() });

/** EuroBERT (Boizard et al. 2025): Llama's network in which every token sees all of its text. */
export const eurobert: ModelFamily = {
  modelType: "eurobert",
  publishedAs: "EuroBERT",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["model."],
  load(config, weights) {
    parseConfig(configSchema, config);
    return loadLlama(config, weights, { kind: "full" }, { theta: 10_000, eps: 1e-5 });
  },
};
