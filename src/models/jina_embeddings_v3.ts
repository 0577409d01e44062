import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { bertKeys, layerSizes } from "./bert-config.ts";
import { embeddingTable, rotaryLayerNames } from "./bert-names.ts";
import { headsDivide, parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { PostNormEncoder } from "./post-norm-encoder.ts";
import { readRope } from "./rope-config.ts";

const configSchema = z
  .object({
    ...bertKeys,
    max_position_embeddings: size.default(8194),
    type_vocab_size: size.default(1),
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
        ...layerSizes(config),
        maxPositions: positions,
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

const parse = (config: unknown) => parseConfig(configSchema, config);

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
