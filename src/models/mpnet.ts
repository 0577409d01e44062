import { z } from "zod";
import { relativeBias } from "../nn/relative-bias.ts";
import { bertKeys, layerSizes } from "./bert-config.ts";
import { bertLayerNames, embeddingTable } from "./bert-names.ts";
import { headsDivide, parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { positionsAfterPadding } from "./padding-positions.ts";
import { PostNormEncoder } from "./post-norm-encoder.ts";

/** Fixed in the reference implementation, whatever config.json says. */
const PAD_ID = 1;
const BUCKETS = { buckets: 32, maxDistance: 128 };

const configSchema = z
  .object({
    ...bertKeys,
    /** Rows of the table; only the first ones are used. */
    relative_attention_num_buckets: size.min(BUCKETS.buckets).default(BUCKETS.buckets),
  })
  .check(headsDivide("num_attention_heads", "hidden_size"));

/** MPNet (Song et al. 2020): BERT with RoBERTa's positions, and a bias by distance that all layers share. */
export const mpnet: ModelFamily = {
  modelType: "mpnet",
  publishedAs: "all-mpnet-base, multi-qa-mpnet",
  lengthLimit: "max_position_embeddings, less 2",
  defaultPooling: "mean",
  weightPrefixes: ["mpnet.", "model."],
  load(unparsed, weights) {
    const config = parseConfig(configSchema, unparsed);
    const { num_attention_heads: heads, max_position_embeddings: positions } = config;
    return new PostNormEncoder(
      {
        ...layerSizes(config),
        maxPositions: positions - (PAD_ID + 1),
        attentionBias: true,
        mlpBias: true,
        tables: {
          words: embeddingTable("word", config.vocab_size),
          positions: {
            ...embeddingTable("position", positions),
            rule: (batch) => positionsAfterPadding(batch, PAD_ID),
          },
          norm: "embeddings.LayerNorm",
        },
        layerNames,
        relativeBias: relativeBias(weights, "encoder.relative_attention_bias", {
          ...BUCKETS,
          ...{ rows: config.relative_attention_num_buckets, heads },
        }),
      },
      weights,
    );
  },
};

function layerNames(index: number) {
  const attention = (part: string) => `encoder.layer.${index}.attention.attn.${part}`;
  return {
    ...bertLayerNames(index),
    attention: { query: attention("q"), key: attention("k"), value: attention("v") },
    attentionOutput: attention("o"),
    attentionNorm: `encoder.layer.${index}.attention.LayerNorm`,
  };
}
