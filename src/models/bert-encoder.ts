import { z } from "zod";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import { bertLayerNames, embeddingTable } from "./bert-names.ts";
import { headsDivide, size } from "./config.ts";
import { PostNormEncoder, type PositionRule } from "./post-norm-encoder.ts";

/** config.json of BERT and RoBERTa. */
export const bertConfig = z
  .object({
    vocab_size: size,
    hidden_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    intermediate_size: size,
    max_position_embeddings: size,
    type_vocab_size: size.default(2),
    hidden_act: z.string().default("gelu"),
    layer_norm_eps: z.number().positive().default(1e-12),
    position_embedding_type: z.literal("absolute").nullish(),
    is_decoder: z.literal(false).nullish(),
  })
  .check(headsDivide("num_attention_heads", "hidden_size"));

type BertConfig = z.output<typeof bertConfig>;

interface BertPositions {
  /** Row of the position table for the first token of a text. */
  readonly first: number;
  readonly rule: PositionRule;
}

const consecutive: BertPositions = { first: 0, rule: (batch) => batch.positions };

/** BERT (Devlin et al. 2018), without its pooler. RoBERTa differs in its positions only. */
export function bertEncoder(
  config: BertConfig,
  weights: Weights,
  { first, rule }: BertPositions = consecutive,
): PostNormEncoder {
  return new PostNormEncoder(
    {
      width: config.hidden_size,
      inner: config.intermediate_size,
      heads: config.num_attention_heads,
      layers: config.num_hidden_layers,
      maxPositions: config.max_position_embeddings - first,
      activation: activation(config.hidden_act, "config.json: hidden_act"),
      eps: config.layer_norm_eps,
      attentionBias: true,
      mlpBias: true,
      tables: {
        words: embeddingTable("word", config.vocab_size),
        types: embeddingTable("token_type", config.type_vocab_size),
        positions: { ...embeddingTable("position", config.max_position_embeddings), rule },
        norm: "embeddings.LayerNorm",
      },
      layerNames: bertLayerNames,
    },
    weights,
  );
}
