import type { Tensor } from "../../ffi/index.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { PoolingMode } from "../pipeline/pooling.ts";

/** A loaded network: token rows in, hidden states out. */
export interface Encoder {
  /** Width of the rows that `forward` returns. */
  readonly hiddenSize: number;
  readonly vocabSize: number;
  /** Longest row that the network can take (position table or config). */
  readonly maxPositions: number;
  /** [N, hiddenSize] f32, lazily evaluated; the caller's scope owns it. */
  forward(batch: RaggedBatch): Tensor;
}

/** One `model_type`: one file in models/, listed in registry.ts. */
export interface ModelFamily {
  readonly modelType: string;
  /** Used where the checkpoint has no pooling module. */
  readonly defaultPooling: PoolingMode;
  /**
   * Builds the network from `config.json` (unparsed) and the tensors. Throws CheckpointError naming the setting
   * or the tensor when either is unknown or missing.
   */
  load(config: unknown, weights: Weights): Encoder;
}
