import { z } from "zod";
import type { Weights } from "../checkpoint/weights.ts";
import { bertKeys, layerSizes } from "./bert-config.ts";
import { bertLayerNames, embeddingTable } from "./bert-names.ts";
import { headsDivide, size } from "./config.ts";
import { PostNormEncoder, type PositionRule } from "./post-norm-encoder.ts";

/** config.json of BERT and RoBERTa. */
export const bertConfig = z
  .object({
    ...bertKeys,
    type_vocab_size: size.default(2),
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
      ...layerSizes(config),
      maxPositions: config.max_position_embeddings - first,
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
