import { z } from "zod";
import { parseConfig, size } from "./config.ts";
import { UNSTATED_MAX_POSITIONS } from "./max-length.ts";

const sizesFile = z
  .looseObject({
    vocab_size: size,
    hidden_size: size,
    intermediate_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    num_key_value_heads: size.nullish(),
    head_dim: size.multipleOf(2).nullish(),
    max_position_embeddings: size.default(UNSTATED_MAX_POSITIONS),
    rms_norm_eps: z.number().positive().nullish(),
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

/** What every network in the shape of a decoder states in config.json. */
export interface DecoderSizes {
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
}

/** What a family takes for keys that its published files leave out. */
export interface SizeDefaults {
  /** Absent: the heads together are as wide as the hidden states. */
  readonly headDim?: number;
  /** Absent: 1e-6. */
  readonly eps?: number;
}

interface SizeOptions extends SizeDefaults {
  /** Where the sizes stand, for errors. */
  readonly file?: string | undefined;
}

/** Throws CheckpointError naming a key whose value is missing or not supported. */
export function readDecoderSizes(
  config: unknown,
  { headDim, eps = 1e-6, file = "config.json" }: SizeOptions = {},
): DecoderSizes {
  const stated = parseConfig(sizesFile, config, file);
  const { hidden_size: width, num_attention_heads: heads } = stated;
  return {
    vocabSize: stated.vocab_size,
    width,
    inner: stated.intermediate_size,
    layerCount: stated.num_hidden_layers,
    heads,
    kvHeads: stated.num_key_value_heads ?? heads,
    headDim: stated.head_dim ?? headDim ?? width / heads,
    maxPositions: stated.max_position_embeddings,
    eps: stated.rms_norm_eps ?? eps,
  };
}
