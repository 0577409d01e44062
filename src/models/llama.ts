import { z } from "zod";
import type { Weights } from "../checkpoint/weights.ts";
import type { Mask } from "../nn/ragged.ts";
import { parseConfig } from "./config.ts";
import { readDecoderMask } from "./decoder-mask.ts";
import type { ModelFamily } from "./family.ts";
import { spacedInstruction } from "./instruction-prompt.ts";
import { type LlamaDefaults, readLlamaSizes } from "./llama-config.ts";
import { LlamaDecoder } from "./llama-decoder.ts";

const configSchema = z.looseObject({
  attention_bias: z.boolean().default(false),
  mlp_bias: z.boolean().default(false),
});

/** Llama 1 to 3 (Touvron et al. 2023). */
export const llama: ModelFamily = {
  modelType: "llama",
  publishedAs: "embedders made of Llama 2 and 3",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "lasttoken",
  weightPrefixes: ["model."],
  instructionPrompt: spacedInstruction,
  load: (config, weights) => loadLlama(config, weights, readDecoderMask(config, "Llama")),
};

/** Throws CheckpointError as `ModelFamily.load`. */
export function loadLlama(
  config: unknown,
  weights: Weights,
  mask: Mask,
  defaults: LlamaDefaults = { theta: 10_000 },
): LlamaDecoder {
  const { attention_bias: attention, mlp_bias: mlp } = parseConfig(configSchema, config);
  return new LlamaDecoder(
    {
      ...readLlamaSizes(config, defaults),
      mask,
      biases: { queryKeyValue: attention, attentionOutput: attention, mlp },
      headNorms: false,
    },
    weights,
  );
}
