import type { Tensor } from "../../ffi/index.ts";
import type { RaggedBatch } from "./ragged.ts";

/** A loaded network: token rows in, hidden states out. */
export interface Encoder {
  /** Width of the rows that `forward` returns. */
  readonly hiddenSize: number;
  /** Rows of the token table; every id must be below it. */
  readonly vocabSize: number;
  /** Longest row that the network can take (position table or config). */
  readonly maxPositions: number;
  /** Longest row where no file states a limit; absent: `maxPositions`. */
  readonly usualPositions?: number | undefined;
  /** [N, hiddenSize] f32, lazily evaluated; the caller's scope owns it. */
  forward(batch: RaggedBatch): Tensor;
}
