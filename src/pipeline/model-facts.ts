import type { WeightFacts } from "../checkpoint/weights.ts";

/** What is told of every loaded model, whatever it computes. */
export interface ModelFacts extends WeightFacts {
  /** `model_type` of the checkpoint. */
  readonly family: string;
  /** Longest row in tokens, specials included. */
  readonly maxLength: number;
  /** Every token id must be below it. */
  readonly vocabSize: number;
}
