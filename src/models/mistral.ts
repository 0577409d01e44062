import { z } from "zod";
import type { Mask } from "../nn/ragged.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { parseConfig } from "./config.ts";
import { readDecoderMask } from "./decoder-mask.ts";
import type { ModelFamily } from "./family.ts";
import { readLlamaSizes } from "./llama-config.ts";
import { LlamaDecoder } from "./llama-decoder.ts";

/** Mistral (Jiang et al. 2023): Llama whose tokens may see a window before them only. */
export const mistral: ModelFamily = {
  modelType: "mistral",
  defaultPooling: "lasttoken",
  weightPrefixes: ["model."],
  instructionPrompt: (task) => `Instruct: ${task}\nQuery: `,
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

/** `readDecoderMask` with the window of config.json, which counts the token itself. */
export function readSlidingMask(config: unknown, family: string): Mask {
  const { sliding_window: window } = parseConfig(windowFile, config, "config.json");
  const mask = readDecoderMask(config, family);
  if (window == null) return mask;
  if (mask.kind === "causal") return { kind: "causal", window };
  throw new CheckpointError(
    `config.json: sliding_window ${window} of a bidirectional ${family} is not supported`,
  );
}
