import type { Tensor } from "../../ffi/index.ts";
import type { RaggedBatch } from "./ragged.ts";

/** A loaded network that gives every row one number. */
export interface SequenceClassifier {
  /** Rows of the token table; every id must be below it. */
  readonly vocabSize: number;
  /** Longest row that the network can take (position table or config). */
  readonly maxPositions: number;
  /** Longest row where no file states a limit; absent: `maxPositions`. */
  readonly usualPositions?: number | undefined;
  /** [B] f32, lazily evaluated; the caller's scope owns it. */
  logits(batch: RaggedBatch): Tensor;
}
