import { z } from "zod";
import { activation } from "../nn/activations.ts";
import type { PostNormShape } from "../nn/post-norm-layer.ts";
import { size } from "./config.ts";

/** Keys of config.json that BERT and its descendants share, with BERT's defaults. */
export const bertKeys = {
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  intermediate_size: size,
  max_position_embeddings: size,
  hidden_act: z.string().default("gelu"),
  layer_norm_eps: z.number().positive().default(1e-12),
};

interface LayerSizes extends Pick<PostNormShape, "width" | "inner" | "activation" | "eps"> {
  readonly heads: number;
  readonly layers: number;
}

/** What these keys say of the layers. Throws CheckpointError for an activation that is not known. */
export function layerSizes(config: z.output<z.ZodObject<typeof bertKeys>>): LayerSizes {
  return {
    width: config.hidden_size,
    inner: config.intermediate_size,
    heads: config.num_attention_heads,
    layers: config.num_hidden_layers,
    activation: activation(config.hidden_act, "config.json: hidden_act"),
    eps: config.layer_norm_eps,
  };
}
