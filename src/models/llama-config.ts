import { z } from "zod";
import { type Activation, activation } from "../nn/activations.ts";
import type { Rope } from "../nn/rope.ts";
import { parseConfig, size } from "./config.ts";
import { readRope } from "./rope-config.ts";

/** For families whose layers could see a window only, which is not supported. */
export const fullAttentionOnly = {
  use_sliding_window: z.literal(false).nullish(),
  layer_types: z.array(z.literal("full_attention")).nullish(),
};

const sizesFile = z
  .looseObject({
    vocab_size: size,
    hidden_size: size,
    intermediate_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    num_key_value_heads: size.nullish(),
    head_dim: size.multipleOf(2).nullish(),
    max_position_embeddings: size.default(8192),
    hidden_act: z.string().default("silu"),
    rms_norm_eps: z.number().positive().default(1e-6),
  })
  .check(({ value, issues }) => {
    const { num_attention_heads: heads, num_key_value_heads: kvHeads } = value;
    if (!kvHeads || heads % kvHeads === 0) return;
    const message = `${kvHeads} does not divide num_attention_heads ${heads}`;
    issues.push({ code: "custom", input: kvHeads, path: ["num_key_value_heads"], message });
  })
  .check(({ value, issues }) => {
    const { num_attention_heads: heads, hidden_size: width } = value;
    if (value.head_dim || width % (2 * heads) === 0) return;
    const message = `${heads} heads do not divide hidden_size ${width} into even parts`;
    issues.push({ code: "custom", input: heads, path: ["num_attention_heads"], message });
  });

/** What every network of Llama's shape states in config.json. */
export interface LlamaSizes {
  readonly vocabSize: number;
  readonly width: number;
  /** Width inside of the MLP. */
  readonly inner: number;
  readonly layerCount: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly maxPositions: number;
  readonly eps: number;
  readonly activation: Activation;
  readonly rope: Rope;
}

/** What a family takes for keys that its published files leave out. */
export interface LlamaDefaults {
  /** Absent: the heads together are as wide as the hidden states. */
  readonly headDim?: number;
  /** Absent: the file must state it. */
  readonly theta?: number;
}

/** Throws CheckpointError naming a key whose value is missing or not supported. */
export function readLlamaSizes(config: unknown, defaults: LlamaDefaults = {}): LlamaSizes {
  const file = parseConfig(sizesFile, config, "config.json");
  const { hidden_size: width, num_attention_heads: heads } = file;
  const headDim = file.head_dim ?? defaults.headDim ?? width / heads;
  const maxPositions = file.max_position_embeddings;
  return {
    vocabSize: file.vocab_size,
    width,
    inner: file.intermediate_size,
    layerCount: file.num_hidden_layers,
    heads,
    kvHeads: file.num_key_value_heads ?? heads,
    headDim,
    maxPositions,
    eps: file.rms_norm_eps,
    activation: activation(file.hidden_act, "config.json: hidden_act"),
    rope: readRope(config, { headDim, positions: maxPositions, defaultTheta: defaults.theta }),
  };
}
