import type { LengthLimits } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";

export interface LengthOptions {
  /** The user's own limit; can only lower the model's. */
  readonly flag?: number | undefined;
  /** Tokens that the model adds around the text. */
  readonly specials: number;
}

/** The smallest limit in tokens that anybody states. Throws CheckpointError where it leaves no room for text. */
export function maxLength(
  limits: LengthLimits,
  positions: number,
  { flag = Number.POSITIVE_INFINITY, specials }: LengthOptions,
): number {
  const { sentenceMaxLength = positions, tokenizerMaxLength = positions } = limits;
  const limit = Math.min(sentenceMaxLength, tokenizerMaxLength, positions, flag);
  if (limit > specials) return limit;
  const source = limit === flag ? "--embedding-max-length" : "the checkpoint's length limit";
  throw new CheckpointError(
    `${source} of ${limit} leaves no room for text: the model adds ${specials} special tokens`,
  );
}
