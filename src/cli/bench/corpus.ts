/** Deterministic texts for benchmarks, cut to lengths in tokens; no two alike. */

const WORDS = (
  "river market engine winter garden signal theory copper island doctor window silver planet harbor memory " +
  "letter system forest bridge summer camera energy history kitchen journal market station village weather " +
  "protein battery village teacher painter railway captain council chapter library machine network pattern " +
  "quality research service science texture uniform variety account balance culture dialect economy farming " +
  "granite heating insight justice keeper lantern mineral notebook orchard package quarter rainfall student"
).split(" ");

type Random = () => number;

/** Mulberry32: a small seeded generator of numbers in [0, 1), so that every run sees the same texts. */
export function random(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from `min` to `max`, both included. */
export function between(next: Random, min: number, max: number): number {
  return min + Math.floor(next() * (max - min + 1));
}

export function sentence(next: Random, words: number): string {
  return Array.from({ length: words }, () => pick(next, WORDS)).join(" ");
}

/** Tokens of a text, specials included. */
export type CountTokens = (text: string) => Promise<number>;

export interface CountedText {
  readonly text: string;
  /** Specials included. */
  readonly tokens: number;
}

interface Word {
  readonly text: string;
  /** What it adds to a sentence. */
  readonly tokens: number;
}

/** Writes texts for one tokenizer. */
export class CorpusWriter {
  readonly #written = new Set<string>();
  readonly #count: CountTokens;
  readonly #words: readonly Word[];

  private constructor(
    count: CountTokens,
    words: readonly Word[],
    /** Tokens of a text without words. */
    readonly specials: number,
  ) {
    this.#count = count;
    this.#words = words;
  }

  static async create(count: CountTokens): Promise<CorpusWriter> {
    const [first = ""] = WORDS;
    const one = await count(first);
    const words: Word[] = [];
    // behind another word: tokenizers may treat the first one differently
    for (const text of new Set(WORDS)) {
      words.push({ text, tokens: (await count(`${first} ${text}`)) - one });
    }
    return new CorpusWriter(count, words, one - (words[0]?.tokens ?? 0));
  }

  /**
   * A new text of exactly so many tokens where the tokenizer has the words for it, else of a few less; of more only where
   * all shorter texts have been written.
   */
  async text(next: Random, tokens: number): Promise<CountedText> {
    const words = this.#draw(next, tokens - this.specials);
    let counted = await this.#count(words.join(" "));
    while (counted > tokens && words.length > 1) {
      words.pop();
      counted = await this.#count(words.join(" "));
    }
    while (this.#written.has(words.join(" "))) {
      words.push(pick(next, WORDS));
      counted = await this.#count(words.join(" "));
    }
    const text = words.join(" ");
    this.#written.add(text);
    return { text, tokens: counted };
  }

  /** Words that add up to so many tokens; at least one. */
  #draw(next: Random, tokens: number): string[] {
    const drawn: string[] = [];
    let fitting = this.#words;
    for (let left = tokens; ;) {
      fitting = fitting.filter((word) => word.tokens <= left);
      if (fitting.length === 0) return drawn.length > 0 ? drawn : [pick(next, WORDS)];
      const word = pick(next, fitting);
      drawn.push(word.text);
      left -= word.tokens;
    }
  }
}

function pick<T>(next: Random, list: readonly T[]): T {
  const picked = list[Math.floor(next() * list.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}
