import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Decoder } from "../nn/decoder.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import { rowStarts } from "../nn/row-layout.ts";
import { oneLabel } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import { readDecoderMask } from "./decoder-mask.ts";
import type { ModelFamily } from "./family.ts";
import { tightInstruction } from "./instruction-prompt.ts";
import { fullAttentionOnly, readLlamaSizes } from "./llama-config.ts";
import { LlamaDecoder, type LlamaShape } from "./llama-decoder.ts";
import { requireRows } from "./lookup-table.ts";

const configSchema = z.looseObject({
  attention_bias: z.boolean().default(false),
  tie_word_embeddings: z.boolean().default(false),
  pad_token_id: z.int().nullish(),
  ...fullAttentionOnly,
});

/** Qwen3 (Qwen Team 2025), dense. */
export const qwen3: ModelFamily = {
  modelType: "qwen3",
  publishedAs: "Qwen3-Embedding, Qwen3-Reranker",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "lasttoken",
  weightPrefixes: ["model."],
  instructionPrompt: tightInstruction,
  answersYesOrNo: true,
  load,
  loadClassifier(config, weights) {
    const { pad_token_id: padId } = parse(config);
    const decoder = load(config, weights);
    const { vocabSize, maxPositions, hiddenSize } = decoder;
    const score = oneLabel(weights, "score", { inputs: hiddenSize, bias: false });
    return {
      vocabSize,
      maxPositions,
      logits(batch) {
        const judged = judgedTokens(batch, padId);
        // [N, H] -> [B, H] -> [B, 1] -> [B]
        const states = mx.take(decoder.forward(batch), mx.fromInt32(judged, [judged.length]), 0);
        return mx.reshape(score(states), [judged.length]);
      },
    };
  },
};

/**
 * [B] place of the last token of each row that is not the padding token. A row may really end in that token, which
 * the reference implementation cannot tell from padding; a row of nothing else is judged by its first.
 */
function judgedTokens({ ids, lengths }: RaggedBatch, padId: number | null | undefined): Int32Array {
  return rowStarts(lengths).map((start, row) => {
    const last = start + lengths[row]! - 1;
    if (padId == null) return last;
    for (let token = last; token > start; token--) if (ids[token] !== padId) return token;
    return start;
  });
}

/** A decoder and as much of its output head as is needed to compare the logits of a few tokens. */
interface PartialLanguageModel {
  readonly decoder: Decoder;
  /** The rows of the head for these tokens, [tokens, hiddenSize] f32. To be called before the weights are closed. */
  takeHead(tokens: readonly number[]): Tensor;
}

/** Throws CheckpointError as `ModelFamily.load`. */
export function loadPartialLanguageModel(config: unknown, weights: Weights): PartialLanguageModel {
  const { tie_word_embeddings: tied } = parse(config);
  const decoder = load(config, weights);
  const { vocabSize, hiddenSize } = decoder;
  const head = tied ? "embed_tokens" : "lm_head";
  return {
    decoder,
    takeHead(tokens) {
      const ids = Int32Array.from(tokens);
      requireRows(ids, vocabSize, head);
      return weights.takeRows(`${head}.weight`, [vocabSize, hiddenSize], ids);
    },
  };
}

function load(config: unknown, weights: Weights): LlamaDecoder {
  const { attention_bias: bias } = parse(config);
  const shape: LlamaShape = {
    ...readLlamaSizes(config, { headDim: 128 }),
    mask: readDecoderMask(config, "Qwen3"),
    biases: { queryKeyValue: bias, attentionOutput: bias, mlp: false },
    headNorms: true,
  };
  return new LlamaDecoder(shape, weights);
}

function parse(config: unknown) {
  return parseConfig(configSchema, config);
}
