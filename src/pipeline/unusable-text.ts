import type { TokenRow } from "../nn/ragged.ts";

/**
 * A text that the model cannot read: it has no tokens, or one that the network has no row for. The message has no
 * subject: whoever knows what the text is called in the request puts that in front.
 */
export class UnusableText extends Error {
  override readonly name = "UnusableText";
}

/** Throws UnusableText for a row without tokens, or with one outside of the vocabulary. */
export function requireUsable({ ids }: TokenRow, vocabSize: number): void {
  if (ids.length === 0) throw new UnusableText("has no tokens");
  requireInVocabulary(ids, vocabSize);
}

/**
 * Throws UnusableText for a token that the network has no row for: mlx does not check indices, one outside of the
 * table would read foreign memory.
 */
export function requireInVocabulary(ids: Int32Array, vocabSize: number): void {
  const stray = ids.find((id) => id < 0 || id >= vocabSize);
  if (stray === undefined) return;
  throw new UnusableText(
    `has the token id ${stray}, which is outside of the vocabulary of ${vocabSize}`,
  );
}
