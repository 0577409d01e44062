import * as mx from "../../ffi/index.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import type { SideSettings } from "../checkpoint/late-interaction.ts";
import { maskTokenOf } from "../checkpoint/mask-token.ts";
import type { Encoder } from "../nn/encoder.ts";
import { raggedBatch, type TokenRow } from "../nn/ragged.ts";
import { LateInteraction } from "../pipeline/late-interaction.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { maxLength } from "./max-length.ts";

interface LateInteractionOptions {
  readonly tokenizer: Tokenizer;
  readonly encoder: Encoder;
  /** The user's own limit; can only lower the checkpoint's. */
  readonly maxLength?: number | undefined;
}

/**
 * How texts become rows in a checkpoint with one vector per token; undefined for every other. Throws CheckpointError
 * naming the setting that does not fit the tokenizer.
 */
export function loadLateInteraction(
  { lateInteraction, limits, transformerDirectory }: Checkpoint,
  { tokenizer, encoder, maxLength: flag }: LateInteractionOptions,
): LateInteraction | undefined {
  if (!lateInteraction) return undefined;
  // A length of its own replaces the general ones: training tools leave in those files what they ran last.
  const limitOf = ({ maxLength: own, marker }: SideSettings) =>
    maxLength(own === undefined ? limits : { sentenceMaxLength: own }, encoder, {
      flag,
      specials: tokenizer.singleSpecials + (marker ? 1 : 0),
    });
  const rows = new LateInteraction(lateInteraction, tokenizer, {
    limits: {
      query: limitOf(lateInteraction.query),
      document: limitOf(lateInteraction.document),
    },
    maskToken: maskTokenOf(transformerDirectory),
  });
  requireRunnable(rows, encoder);
  return rows;
}

/** Throws CheckpointError where the network cannot run the shortest rows, which hold nothing but what is added. */
function requireRunnable(rows: LateInteraction, encoder: Encoder): void {
  for (const side of ["query", "document"] as const) {
    const row = rows.row("", side);
    const stray = row.ids.find((id) => id >= encoder.vocabSize);
    if (stray !== undefined) {
      throw new CheckpointError(
        `the token ${stray} that is put into each ${side} is not in config.json's vocab_size of ${encoder.vocabSize}; the files do not belong together`,
      );
    }
    if (row.ids.length > 0) requireVisible(row, encoder);
  }
}

function requireVisible(row: TokenRow, encoder: Encoder): void {
  try {
    mx.scope(() => void encoder.forward(raggedBatch([row])));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CheckpointError(
      `short queries that are filled up to ${row.ids.length} tokens do not work with the attention of this network (${error.message}); they do if the tokens that fill up are attended to`,
      { cause: error },
    );
  }
}
