import { z } from "zod";
import { parseConfig } from "./config.ts";
import { readDecoderMask } from "./decoder-mask.ts";
import type { ModelFamily } from "./family.ts";
import { spacedInstruction } from "./instruction-prompt.ts";
import { fullAttentionOnly, readLlamaSizes } from "./llama-config.ts";
import { LlamaDecoder } from "./llama-decoder.ts";

const configSchema = z.looseObject(fullAttentionOnly);

/** Qwen2 and Qwen2.5 (Qwen Team 2024), dense; the embedders of GTE run it in both directions. */
export const qwen2: ModelFamily = {
  modelType: "qwen2",
  publishedAs: "GTE-Qwen2, causal or bidirectional",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "lasttoken",
  weightPrefixes: ["model."],
  instructionPrompt: spacedInstruction,
  load(config, weights) {
    parseConfig(configSchema, config);
    return new LlamaDecoder(
      {
        ...readLlamaSizes(config, { theta: 10_000 }),
        mask: readDecoderMask(config, "Qwen2"),
        biases: { queryKeyValue: true, attentionOutput: false, mlp: false },
        headNorms: false,
      },
      weights,
    );
  },
};
