import { z } from "zod";
import { activation } from "../nn/activations.ts";
import { embeddingTable } from "./bert-names.ts";
import { headsDivide, parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { PostNormEncoder } from "./post-norm-encoder.ts";

const configSchema = z
  .object({
    vocab_size: size,
    dim: size,
    hidden_dim: size,
    n_layers: size,
    n_heads: size,
    max_position_embeddings: size,
    activation: z.string().default("gelu"),
  })
  .check(headsDivide("n_heads", "dim"));

/** Fixed in the reference implementation: config.json does not have it. */
const EPS = 1e-12;

/** DistilBERT (Sanh et al. 2019): BERT without token types, half as deep. Sinusoidal positions are stored as a table too. */
export const distilbert: ModelFamily = {
  modelType: "distilbert",
  publishedAs: "multi-qa-distilbert, msmarco-distilbert",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["distilbert.", "model."],
  load(unparsed, weights) {
    const config = parseConfig(configSchema, unparsed);
    return new PostNormEncoder(
      {
        width: config.dim,
        inner: config.hidden_dim,
        heads: config.n_heads,
        layers: config.n_layers,
        maxPositions: config.max_position_embeddings,
        activation: activation(config.activation, "config.json: activation"),
        eps: EPS,
        attentionBias: true,
        mlpBias: true,
        tables: {
          words: embeddingTable("word", config.vocab_size),
          positions: {
            ...embeddingTable("position", config.max_position_embeddings),
            rule: (batch) => batch.positions,
          },
          norm: "embeddings.LayerNorm",
        },
        layerNames,
      },
      weights,
    );
  },
};

function layerNames(index: number) {
  const layer = `transformer.layer.${index}`;
  const attention = (part: string) => `${layer}.attention.${part}_lin`;
  return {
    attention: { query: attention("q"), key: attention("k"), value: attention("v") },
    attentionOutput: attention("out"),
    attentionNorm: `${layer}.sa_layer_norm`,
    mlp: { input: `${layer}.ffn.lin1`, output: `${layer}.ffn.lin2` },
    mlpNorm: `${layer}.output_layer_norm`,
  };
}
