import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import { embeddingTable, rotaryLayerNames } from "./bert-names.ts";
import { headsDivide, parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { PostNormEncoder } from "./post-norm-encoder.ts";
import { readRope } from "./rope-config.ts";

const configSchema = z
  .object({
    vocab_size: size,
    hidden_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    intermediate_size: size,
    max_position_embeddings: size.default(8194),
    type_vocab_size: size.default(1),
    hidden_act: z.string().default("gelu"),
    layer_norm_eps: z.number().positive().default(1e-5),
    is_decoder: z.literal(false).nullish(),
  })
  .check(headsDivide("num_attention_heads", "hidden_size", { even: true }));

/** Jina Embeddings v3 (Sturua et al. 2024) without its adapters: XLM-RoBERTa with rotary positions. */
export const jinaEmbeddingsV3: ModelFamily = {
  modelType: "jina_embeddings_v3",
  publishedAs: "Jina Embeddings v3 as transformers writes it, no adapters",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["roberta.", "model."],
  typeCount: (config) => parse(config).type_vocab_size,
  load(unparsed, weights) {
    refuseOriginalNames(weights);
    const config = parse(unparsed);
    const { hidden_size: width, num_attention_heads: heads } = config;
    const positions = config.max_position_embeddings;
    return new PostNormEncoder(
      {
        width,
        inner: config.intermediate_size,
        heads,
        layers: config.num_hidden_layers,
        maxPositions: positions,
        activation: activation(config.hidden_act, "config.json: hidden_act"),
        eps: config.layer_norm_eps,
        attentionBias: true,
        mlpBias: true,
        tables: {
          words: embeddingTable("word", config.vocab_size),
          types: embeddingTable("token_type", config.type_vocab_size),
          norm: "embeddings.LayerNorm",
        },
        layerNames,
        rope: readRope(unparsed, { headDim: width / heads, positions, defaultTheta: 20_000 }),
      },
      weights,
    );
  },
};

const parse = (config: unknown) => parseConfig(configSchema, config, "config.json");

/** The first published files, in which adapters for tasks are part of every layer. */
function refuseOriginalNames(weights: Weights): void {
  if (!weights.has("emb_ln.weight")) return;
  throw new CheckpointError(
    `tensor "emb_ln.weight" in ${weights.path}: the original layout of Jina Embeddings v3 is not supported; use a checkpoint in the layout of transformers, without adapters`,
  );
}

function layerNames(index: number) {
  const mlp = `layers.${index}.mlp`;
  return { ...rotaryLayerNames(index), mlp: { input: `${mlp}.fc1`, output: `${mlp}.fc2` } };
}
