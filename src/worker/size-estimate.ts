import type { EmbedItem } from "./job.ts";

/** Characters per token, on the low side for European languages and on the high side for Chinese. */
const CHARACTERS_PER_TOKEN = 3;
const SPECIALS = 2;

/** Tokens of a text that is cut at `maxLength`; a guess that costs nothing. */
export function estimatedTextTokens(text: string, maxLength: number): number {
  return Math.min(maxLength, SPECIALS + Math.ceil(text.length / CHARACTERS_PER_TOKEN));
}

export function estimatedTokens(items: readonly EmbedItem[], maxLength: number): number {
  return items.reduce(
    (sum, item) =>
      sum +
      ("text" in item
        ? estimatedTextTokens(item.text, maxLength)
        : Math.min(maxLength, item.ids.length)),
    0,
  );
}
