import { CheckpointError } from "../checkpoint/error.ts";
import type { ModelFamily } from "./family.ts";
import { readLlamaSizes } from "./llama-config.ts";
import { LlamaDecoder } from "./llama-decoder.ts";
import { readSlidingMask } from "./mistral.ts";

/** Ministral 3 (Mistral AI 2025): Mistral with YaRN and queries that grow with their position. */
export const ministral3: ModelFamily = {
  modelType: "ministral3",
  publishedAs: "embedders made of Ministral 3",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["model."],
  load(config, weights) {
    const sizes = readLlamaSizes(config, { headDim: 128 });
    if (!sizes.rope.queryFactor) {
      throw new CheckpointError("config.json: rope_parameters.llama_4_scaling_beta is missing");
    }
    return new LlamaDecoder(
      {
        ...sizes,
        mask: readSlidingMask(config, "Ministral3"),
        biases: { queryKeyValue: false, attentionOutput: false, mlp: false },
        headNorms: false,
      },
      weights,
    );
  },
};
