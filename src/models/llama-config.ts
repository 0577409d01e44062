import { z } from "zod";
import { type Activation, activation } from "../nn/activations.ts";
import type { Rope } from "../nn/rope.ts";
import { parseConfig } from "./config.ts";
import { type DecoderSizes, readDecoderSizes, type SizeDefaults } from "./decoder-sizes.ts";
import { readRope } from "./rope-config.ts";

/** For families whose layers could see a window only, which is not supported. */
export const fullAttentionOnly = {
  use_sliding_window: z.literal(false).nullish(),
  layer_types: z.array(z.literal("full_attention")).nullish(),
};

const activationFile = z.looseObject({ hidden_act: z.string().default("silu") });

/** What every network of Llama's shape states in config.json. */
export interface LlamaSizes extends DecoderSizes {
  readonly activation: Activation;
  readonly rope: Rope;
}

export interface LlamaDefaults extends SizeDefaults {
  /** Absent: the file must state it. */
  readonly theta?: number;
}

/** Throws CheckpointError naming a key whose value is missing or not supported. */
export function readLlamaSizes(config: unknown, defaults: LlamaDefaults = {}): LlamaSizes {
  const sizes = readDecoderSizes(config, defaults);
  const { hidden_act: name } = parseConfig(activationFile, config);
  const { headDim, maxPositions: positions } = sizes;
  return {
    ...sizes,
    activation: activation(name, "config.json: hidden_act"),
    rope: readRope(config, { headDim, positions, defaultTheta: defaults.theta }),
  };
}
