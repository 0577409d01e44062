import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Encoder } from "../nn/encoder.ts";
import { linear, type Linear } from "../nn/linear.ts";
import type { SequenceClassifier } from "../nn/sequence-classifier.ts";
import { pool, type PoolingMode } from "../pipeline/pooling.ts";

interface ClassifierHead {
  /** How the hidden states of a row become one vector. */
  readonly pooling: PoolingMode;
  /** [B, H] f32 pooled -> [B, H], what the family has between pooling and projection. */
  readonly transform?: (pooled: Tensor) => Tensor;
  /** [B, H] -> [B, 1], see `oneLabel`. */
  readonly projection: Linear;
}

/** A network with a head. The head computes in f32 whatever the weights are stored in: its input is f32. */
export function classifier(encoder: Encoder, head: ClassifierHead): SequenceClassifier {
  const { pooling, transform = (pooled: Tensor) => pooled, projection } = head;
  return {
    vocabSize: encoder.vocabSize,
    maxPositions: encoder.maxPositions,
    usualPositions: encoder.usualPositions,
    logits(batch) {
      const { lengths } = batch;
      const rows = { lengths, promptTokens: new Int32Array(lengths.length) };
      const pooled = pool(encoder.forward(batch), rows, { modes: [pooling], includePrompt: true });
      // [B, 1] -> [B]
      return mx.reshape(projection(transform(pooled)), [lengths.length]);
    },
  };
}

interface DenseHead {
  /** Name of the layer without `.weight`; absent: BERT's. */
  readonly dense?: string;
  readonly projection?: string;
  readonly activation?: (x: Tensor) => Tensor;
}

/** The head of BERT and most of its descendants: projection(activation(dense(first token))). */
export function denseClassifier(
  encoder: Encoder,
  weights: Weights,
  { dense = "pooler.dense", projection = "classifier", activation = mx.tanh }: DenseHead = {},
): SequenceClassifier {
  const inputs = encoder.hiddenSize;
  const transform = linear(weights, dense, { inputs, outputs: inputs, bias: true });
  return classifier(encoder, {
    pooling: "cls",
    transform: (pooled) => activation(transform(pooled)),
    projection: oneLabel(weights, projection, { inputs, bias: true }),
  });
}

/**
 * The projection of a pooled row to its only label. Throws CheckpointError where the tensor has more labels:
 * config.json is not asked, it often lists labels that are not there.
 */
export function oneLabel(
  weights: Weights,
  name: string,
  shape: { readonly inputs: number; readonly bias: boolean },
): Linear {
  const labels = weights.take(`${name}.weight`).shape[0];
  if (labels === 1) return linear(weights, name, { ...shape, outputs: 1 });
  throw new CheckpointError(
    `${weights.path} is a classifier of ${labels} labels (rows of "${name}.weight"); a reranker needs exactly 1, use a cross-encoder`,
  );
}
