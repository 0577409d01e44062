import { z } from "zod";
import { headsDivide, rotaryFactor, size } from "./config.ts";
import { layerKind, type LayerKind, layerKinds } from "./layer-kind.ts";

const ropeParameters = z.object({
  rope_type: z.literal("default").optional(),
  rope_theta: rotaryFactor,
});

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
    global_rope_theta: rotaryFactor.default(160_000),
    local_rope_theta: rotaryFactor.nullable().default(10_000),
    rope_scaling: z.null().optional(),
    classifier_pooling: z.enum(["cls", "mean"]).default("cls"),
    classifier_bias: z.boolean().default(false),
    classifier_activation: z.string().default("gelu"),
  })
  .check(headsDivide("num_attention_heads", "hidden_size", { even: true }));

export type ModernBertConfig = z.output<typeof modernBertConfig>;

/** One per layer. Throws CheckpointError where `layer_types` has another number of them. */
export function modernBertLayerKinds(config: ModernBertConfig): readonly LayerKind[] {
  const {
    layer_types: stated,
    num_hidden_layers: layers,
    global_attn_every_n_layers: step,
  } = config;
  return layerKinds(stated, layers, (layer) => layer % step === 0);
}

/** Base of the rotary embedding in layers of a kind. */
export function ropeTheta(config: ModernBertConfig, kind: LayerKind): number {
  const stated = config.rope_parameters?.[kind]?.rope_theta;
  if (stated !== undefined) return stated;
  const { global_rope_theta: global, local_rope_theta: local } = config;
  return kind === "full_attention" ? global : (local ?? global);
}
