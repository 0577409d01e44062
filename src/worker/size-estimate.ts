import type { EmbedItem } from "./job.ts";

/** Characters per token, on the low side for European languages and on the high side for Chinese. */
const CHARACTERS_PER_TOKEN = 3;
const SPECIALS = 2;

/** Tokens of texts that are each cut at `maxLength`; a guess that costs nothing. */
export function estimatedTextTokens(texts: readonly string[], maxLength: number): number {
  return texts.reduce((sum, text) => sum + estimate(text, maxLength), 0);
}

/** As `estimatedTextTokens`; token ids are counted. */
export function estimatedTokens(items: readonly EmbedItem[], maxLength: number): number {
  const tokens = (item: EmbedItem) =>
    "text" in item ? estimate(item.text, maxLength) : Math.min(maxLength, item.ids.length);
  return items.reduce((sum, item) => sum + tokens(item), 0);
}

function estimate(text: string, maxLength: number): number {
  return Math.min(maxLength, SPECIALS + Math.ceil(text.length / CHARACTERS_PER_TOKEN));
}
