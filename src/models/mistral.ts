import { z } from "zod";
import type { Mask } from "../nn/ragged.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { parseConfig } from "./config.ts";
import { readBidirectional } from "./decoder-mask.ts";
import type { ModelFamily } from "./family.ts";
import { spacedInstruction } from "./instruction-prompt.ts";
import { readLlamaSizes } from "./llama-config.ts";
import { LlamaDecoder } from "./llama-decoder.ts";

/** Mistral (Jiang et al. 2023): Llama whose tokens may see a window before them only. */
export const mistral: ModelFamily = {
  modelType: "mistral",
  publishedAs: "E5-Mistral, SFR, Linq",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "lasttoken",
  weightPrefixes: ["model."],
  instructionPrompt: spacedInstruction,
  load: (config, weights) =>
    new LlamaDecoder(
      {
        ...readLlamaSizes(config, { theta: 10_000 }),
        mask: readSlidingMask(config, "Mistral"),
        biases: { queryKeyValue: false, attentionOutput: false, mlp: false },
        headNorms: false,
      },
      weights,
    ),
};

const windowFile = z.looseObject({
  sliding_window: z.int().positive().nullish(),
  layer_types: z.null().optional(),
});

/**
 * The mask by config.json; its window counts the token itself. `stem` and errors as `readBidirectional`, and one where
 * a window is to be seen in both directions.
 */
export function readSlidingMask(config: unknown, stem: string): Mask {
  const { sliding_window: window } = parseConfig(windowFile, config);
  if (!readBidirectional(config, stem)) return { kind: "causal", window: window ?? undefined };
  if (window == null) return { kind: "full" };
  throw new CheckpointError(
    `config.json: sliding_window ${window} of a bidirectional ${stem} is not supported`,
  );
}
