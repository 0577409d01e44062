import type { RerankResult } from "../../worker/job.ts";
import type { RankingOptions } from "../dialect.ts";

interface Ranking {
  /** [documents] the scores that the request asked for. */
  readonly scores: Float32Array;
  /** Indices of the documents that are answered: best first, equals by ascending index. */
  readonly order: readonly number[];
}

/** Leaves 32 of the 53 bits of an exact integer to the score. */
export const MAX_DOCUMENTS = 2 ** 21;

/**
 * Puts at most MAX_DOCUMENTS documents in order. Each score and its index become one integer below 2^53 whose order is the ranking's: the
 * engine sorts plain numbers many times as fast as it calls a comparison.
 */
export function ranking(result: RerankResult, { rawScores, topN }: RankingOptions): Ranking {
  const scores = rawScores ? result.rawScores : result.scores;
  // + 0: both zeros are one score
  const bits = new Uint32Array(scores.map((score) => score + 0).buffer);
  const keys = new Float64Array(scores.length);
  bits.forEach((pattern, item) => {
    keys[item] = descending(pattern) * MAX_DOCUMENTS + item;
  });
  keys.sort();
  return { scores, order: Array.from(keys.subarray(0, topN), (key) => key % MAX_DOCUMENTS) };
}

/** An f32's bits as an integer that is smaller the greater the number is. */
function descending(pattern: number): number {
  const isNegative = pattern >= 2 ** 31;
  return isNegative ? pattern : 2 ** 31 - 1 - pattern;
}
