import { PieceTrie } from "./piece-trie.ts";
import { whiteSpaceAfter, whiteSpaceBefore } from "./white-space.ts";

/** A token that is found in a text before all else, as tokenizer.json has it. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** It takes white space before or behind it along. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  /** It is none in the middle of a word. */
  readonly single_word: boolean;
  /** It is looked for in the normalised text, in its own normalised form. */
  readonly normalized: boolean;
}

/** A part of a text: one of the tokens, or what lies between them. */
type TextPart =
  | { readonly id: number }
  | { readonly id?: undefined; readonly text: string; readonly start: number };

/** `\w` of the reference library. */
const WORD_CHARACTER = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;

/** Splits texts at tokens: of those that begin at the first place where one does, the longest. */
export class AddedTokens {
  readonly #trie = new PieceTrie();
  readonly #tokens: readonly AddedToken[];
  /** Whether a token begins with a UTF-16 unit. */
  readonly #begins = new Uint8Array(0x1_0000);

  /** `contentOf`: what stands for a token in the texts. */
  constructor(tokens: readonly AddedToken[], contentOf: (token: AddedToken) => string) {
    this.#tokens = tokens;
    for (const [index, token] of tokens.entries()) {
      const content = contentOf(token);
      if (content === "") continue;
      this.#trie.add(content, index);
      this.#begins[content.charCodeAt(0)] = 1;
    }
  }

  split(text: string): TextPart[] {
    const parts: TextPart[] = [];
    let covered = 0;
    for (let at = 0; at < text.length;) {
      const match = this.#begins[text.charCodeAt(at)] === 1 ? this.#match(text, at) : undefined;
      if (match === undefined) {
        at++;
        continue;
      }
      const { token, end } = match;
      if (!token.single_word || isWord(text, at, end)) {
        const start = token.lstrip ? whiteSpaceBefore(text, at, covered) : at;
        if (start > covered) parts.push({ text: text.slice(covered, start), start: covered });
        parts.push({ id: token.id });
        covered = token.rstrip ? whiteSpaceAfter(text, end) : end;
      }
      at = end;
    }
    if (covered < text.length) parts.push({ text: text.slice(covered), start: covered });
    return parts;
  }

  #match(text: string, at: number): { token: AddedToken; end: number } | undefined {
    let longest: { token: AddedToken; end: number } | undefined;
    this.#trie.match(text, at, (end, index) => {
      longest = { token: this.#tokens[index]!, end };
    });
    return longest;
  }
}

function isWord(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 2), start);
  const last = [...before].at(-1) ?? "";
  const next = end < text.length ? String.fromCodePoint(text.codePointAt(end)!) : "";
  return !WORD_CHARACTER.test(last) && !WORD_CHARACTER.test(next);
}
