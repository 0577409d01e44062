import type { LengthLimits } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";

/**
 * Longest row in tokens that a network takes where nothing bounds it: its distances have no end, or config.json does
 * not state its positions. It only keeps rows from taking all the memory.
 */
export const UNSTATED_MAX_POSITIONS = 8192;

interface LengthOptions {
  /** The user's own limit; can only lower the model's. */
  readonly flag?: number | undefined;
  /** Tokens that the model adds around the text. */
  readonly specials: number;
}

/** Of an Encoder or a SequenceClassifier. */
interface NetworkLength {
  readonly maxPositions: number;
  readonly usualPositions?: number | undefined;
}

/** The smallest limit in tokens that anybody states. Throws CheckpointError where it leaves no room for text. */
export function maxLength(
  limits: LengthLimits,
  { maxPositions, usualPositions = maxPositions }: NetworkLength,
  { flag = Number.POSITIVE_INFINITY, specials }: LengthOptions,
): number {
  const { sentenceMaxLength, tokenizerMaxLength = sentenceMaxLength ?? usualPositions } = limits;
  const stated = Math.min(sentenceMaxLength ?? tokenizerMaxLength, tokenizerMaxLength);
  const limit = Math.min(stated, maxPositions, flag);
  if (limit > specials) return limit;
  const source = limit === flag ? "--embedding-max-length" : "the checkpoint's length limit";
  throw new CheckpointError(
    `${source} of ${limit} leaves no room for text: the model adds ${specials} special tokens`,
  );
}
