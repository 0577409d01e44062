import { vocabularyOf, type TokenizerFile } from "./tokenizer-file.ts";

/** Texts below this are encoded whole: cutting them would not pay. */
const WHOLE_BELOW_CHARS = 8192;
/** More than nearly every text has per token, so that the first try is usually enough. */
const CHARS_PER_TOKEN = 8;
/** How far back a cut looks for a space. */
const LOOK_BACK_CHARS = 1024;
/** Merges of byte pairs decide within a few tokens; what follows a cut has no say further back than this. */
const UNSETTLED_BPE_TOKENS = 256;

/**
 * A WordPiece word over some hundred characters is one unknown token, or the part of it that normalizing leaves: what
 * comes after this many characters does not matter, unless nearly all of them are dropped marks.
 */
const LONGEST_WORD_CHARS = 65_536;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;

const SPACE = 0x20;
const WHITESPACE = /[\s\u0085]/;

export interface EncodedPart {
  readonly ids: Int32Array;
  /** Tokens at the end that the model itself knows to depend on what follows. */
  readonly unsettledTokens?: number;
}

/**
 * The first tokens of a text without encoding all of it: encodes a beginning of the text, of doubling length, until
 * it holds enough tokens that no longer depend on the rest.
 *
 * A beginning that ends between a word and a space settles all of its tokens where no token of the vocabulary spans
 * such a place. Elsewhere (no spaces, or other white space) the last tokens are unsettled: in WordPiece those of one
 * word, in BPE a fixed number, and a Unigram model tells itself how many.
 */
export class LeadingTokens {
  readonly #encodeWhole: (text: string) => EncodedPart;
  readonly #splitsAtSpaces: boolean;
  readonly #unsettledTokens: number;
  readonly #isWordPiece: boolean;

  constructor(file: TokenizerFile, encodeWhole: (text: string) => EncodedPart) {
    this.#encodeWhole = encodeWhole;
    this.#splitsAtSpaces = splitsAtSpaces(file);
    this.#unsettledTokens = unsettledTokens(file);
    this.#isWordPiece = file.model.type === "WordPiece";
  }

  /** The first `count` tokens of a text, or all where it has fewer. Well-formed UTF-16 only. */
  of(text: string, count: number): Int32Array {
    let length = Math.max(WHOLE_BELOW_CHARS, count * CHARS_PER_TOKEN);
    for (; length < text.length; length *= 2) {
      const end = cutAt(text, length);
      const { ids, unsettledTokens = 0 } = this.#encode(text.slice(0, end), count);
      const settled =
        this.#splitsAtSpaces && text.charCodeAt(end) === SPACE
          ? ids.length
          : ids.length - this.#unsettledTokens - unsettledTokens;
      if (settled >= count) return ids.subarray(0, count);
    }
    return this.#encode(text, count).ids.subarray(0, count);
  }

  /** Enough of the text to know its first `count` tokens. */
  #encode(text: string, count: number): EncodedPart {
    // a word of Chinese has a token per character
    const cutsWords = this.#isWordPiece && count <= LONGEST_WORD_CHARS;
    if (!cutsWords || text.length <= LONGEST_WORD_CHARS) return this.#encodeWhole(text);
    return this.#encodeWhole(text.replace(WORD, (word) => word.slice(0, LONGEST_WORD_CHARS)));
  }
}

/**
 * A place to cut at or before `length`: in front of a space if one is near, never inside or behind white space (a
 * special token after it may swallow all of it), never inside a surrogate pair.
 */
function cutAt(text: string, length: number): number {
  const space = text.lastIndexOf(" ", length);
  let end = space > length - LOOK_BACK_CHARS ? space : length;
  while (end > 0 && WHITESPACE.test(text.charAt(end - 1))) end--;
  return isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Whether no token reaches from a character that is not white space over a following space. */
function splitsAtSpaces(file: TokenizerFile): boolean {
  const spanning = usesByteLevel(file.pre_tokenizer)
    ? /[^ \t\r\nĠĉčĊ][ Ġ]/ // the byte alphabet's space, tab, carriage return and line feed
    : /[^\s▁][ ▁]/;
  for (const [piece] of vocabularyOf(file)) if (spanning.test(piece)) return false;
  return true;
}

function usesByteLevel(preTokenizer: TokenizerFile["pre_tokenizer"]): boolean {
  return preTokenizer !== null && JSON.stringify(preTokenizer).includes('"ByteLevel"');
}

function unsettledTokens({ model, added_tokens }: TokenizerFile): number {
  const longestAdded = added_tokens.reduce(
    (most, { content }) => Math.max(most, content.length),
    0,
  );
  switch (model.type) {
    case "WordPiece":
      return (model.max_input_chars_per_word ?? 100) + longestAdded;
    case "BPE":
      return UNSETTLED_BPE_TOKENS + longestAdded;
    default:
      return longestAdded;
  }
}
