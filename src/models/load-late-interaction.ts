import type { Checkpoint, SideSettings } from "../checkpoint/checkpoint.ts";
import { maskTokenOf } from "../checkpoint/mask-token.ts";
import { LateInteraction } from "../pipeline/late-interaction.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { maxLength } from "./max-length.ts";

export interface LateInteractionOptions {
  readonly tokenizer: Tokenizer;
  /** Longest row that the network can take. */
  readonly maxPositions: number;
  /** The user's own limit; can only lower the checkpoint's. */
  readonly maxLength?: number | undefined;
}

/**
 * How texts become rows in a checkpoint with one vector per token; undefined for every other. Throws CheckpointError
 * naming the setting that does not fit the tokenizer.
 */
export function loadLateInteraction(
  { lateInteraction, limits, transformerDirectory }: Checkpoint,
  { tokenizer, maxPositions, maxLength: flag }: LateInteractionOptions,
): LateInteraction | undefined {
  if (!lateInteraction) return undefined;
  // A length of its own replaces the general ones: training tools leave in those files what they ran last.
  const limitOf = ({ maxLength: own, marker }: SideSettings) =>
    maxLength(own === undefined ? limits : { sentenceMaxLength: own }, maxPositions, {
      flag,
      specials: tokenizer.singleSpecials + (marker ? 1 : 0),
    });
  return new LateInteraction(lateInteraction, tokenizer, {
    limits: {
      query: limitOf(lateInteraction.query),
      document: limitOf(lateInteraction.document),
    },
    maskToken: maskTokenOf(transformerDirectory),
  });
}
