import type { LengthLimits } from "../checkpoint/checkpoint.ts";

/** The smallest limit in tokens that anybody states; `flag` is the user's. */
export function maxLength(
  limits: LengthLimits,
  positions: number,
  flag = Number.POSITIVE_INFINITY,
): number {
  const { sentenceMaxLength = positions, tokenizerMaxLength = positions } = limits;
  return Math.min(sentenceMaxLength, tokenizerMaxLength, positions, flag);
}
