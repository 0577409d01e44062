import { z } from "zod";
import { headsDivide, size } from "./config.ts";
import { layerKind, type LayerKind } from "./layer-kind.ts";

const theta = z.number().positive();

const ropeParameters = z.object({ rope_type: z.literal("default").optional(), rope_theta: theta });

/** config.json, in the spelling of transformers 4 or 5. */
export const modernBertConfig = z
  .object({
    vocab_size: size,
    hidden_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    intermediate_size: size,
    max_position_embeddings: size.default(8192),
    hidden_activation: z.string().default("gelu"),
    norm_eps: z.number().positive().default(1e-5),
    norm_bias: z.boolean().default(false),
    attention_bias: z.boolean().default(false),
    mlp_bias: z.boolean().default(false),
    /** Width of the window of a sliding layer. */
    local_attention: size.default(128),
    // Two spellings of the layers' kinds and of the base of their rotation; the newer one is listed first.
    layer_types: z.array(layerKind).nullish(),
    global_attn_every_n_layers: size.default(3),
    rope_parameters: z
      .object({
        full_attention: ropeParameters.optional(),
        sliding_attention: ropeParameters.optional(),
      })
      .nullish(),
    global_rope_theta: theta.default(160_000),
    local_rope_theta: theta.nullable().default(10_000),
    rope_scaling: z.null().optional(),
    classifier_pooling: z.enum(["cls", "mean"]).default("cls"),
    classifier_bias: z.boolean().default(false),
    classifier_activation: z.string().default("gelu"),
  })
  .check(headsDivide("num_attention_heads", "hidden_size", { even: true }))
  .check(({ value, issues }) => {
    const { layer_types: kinds } = value;
    if (kinds && kinds.length !== value.num_hidden_layers) {
      const message = `${kinds.length} entries for ${value.num_hidden_layers} layers`;
      issues.push({ code: "custom", input: kinds, path: ["layer_types"], message });
    }
  });

export type ModernBertConfig = z.output<typeof modernBertConfig>;

/** One per layer. */
export function layerKinds(config: ModernBertConfig): readonly LayerKind[] {
  if (config.layer_types) return config.layer_types;
  return Array.from({ length: config.num_hidden_layers }, (_, layer) =>
    layer % config.global_attn_every_n_layers === 0 ? "full_attention" : "sliding_attention",
  );
}

/** Base of the rotary embedding in layers of a kind. */
export function ropeTheta(config: ModernBertConfig, kind: LayerKind): number {
  const stated = config.rope_parameters?.[kind]?.rope_theta;
  if (stated !== undefined) return stated;
  const { global_rope_theta: global, local_rope_theta: local } = config;
  return kind === "full_attention" ? global : (local ?? global);
}
