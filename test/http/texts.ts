/** Texts in the words of the fixtures' vocabularies, so that token counts are known. */

/** Each is one token of the uncased BERT fixtures. */
const WORDS =
  "the vector search token model query answer document sound window old fox library second time before engine morning".split(
    " ",
  );

/** `count` words, one token each; different seeds give different texts. */
export function words(count: number, seed = 0): string {
  return Array.from({ length: count }, (_, i) => WORDS[mixed(i, seed) % WORDS.length]).join(" ");
}

/** Different texts whose lengths jump up and down between 1 and `longest` words. */
export function shuffledTexts(count: number, longest: number): string[] {
  return Array.from({ length: count }, (_, i) => words(1 + (mixed(i, 7) % longest), i + 1));
}

function mixed(i: number, seed: number): number {
  return Math.imul((i + 1) * 2654435761 + seed * 40503, 2246822519) >>> 16;
}
