import { Model } from "@huggingface/tokenizers";
import { PieceTrie } from "./piece-trie.ts";

/** Subtracted from the lowest score of the vocabulary for a character that no piece covers. */
const UNKNOWN_PENALTY = 10;
/** A normalizer may change this many characters before a cut when the text goes on. */
const NORMALIZER_REACH_CHARS = 32;

interface UnigramOptions {
  readonly vocab: readonly (readonly [piece: string, score: number])[];
  readonly unknownId: number | undefined;
  /** Whether every ▁ begins a new word that is segmented on its own. */
  readonly splitsWords: boolean;
}

/**
 * The Unigram model (https://arxiv.org/abs/1804.10959): of all ways to cut a word into pieces, the one with the
 * highest sum of scores; among equals the one found first from the left. Takes the place of the library's model,
 * which runs one lattice of objects over the whole text, fails on long ones, and cannot tell which pieces depend
 * on the end of the text.
 */
export class Unigram extends Model {
  /** Tokens at the end of what was encoded last that could be others if the text went on. */
  unsettledTokens = 0;
  readonly #splitsWords: boolean;
  readonly #scores: Float64Array;
  readonly #unknownScore: number;
  readonly #trie = new PieceTrie();
  #best = new Float64Array(0);
  #cameFrom = new Int32Array(0);

  constructor({ vocab, unknownId, splitsWords }: UnigramOptions) {
    super({
      type: "Unigram",
      vocab: [],
      unk_id: unknownId ?? 0,
    });
    this.#splitsWords = splitsWords;
    this.#scores = Float64Array.from(vocab, ([, score]) => score);
    this.#unknownScore = this.#scores.reduce((a, b) => Math.min(a, b), Infinity) - UNKNOWN_PENALTY;
    for (const [id, [piece]] of vocab.entries()) {
      this.vocab[id] = piece;
      this.tokens_to_ids.set(piece, id);
      if (id !== unknownId) this.#trie.add(piece, id);
    }
    if (unknownId !== undefined) {
      this.unk_token_id = unknownId;
      this.unk_token = this.vocab[unknownId] ?? "";
    }
  }

  /** Pieces of pre-tokens; a run of unknown characters is one piece that is not in the vocabulary. */
  override encode(preTokens: string[]): string[] {
    const pieces: string[] = [];
    for (const preToken of preTokens) {
      const words = this.#splitsWords ? preToken.split(/(?=▁)/) : [preToken];
      for (const word of words) this.#segment(word, pieces);
    }
    return pieces;
  }

  #segment(word: string, pieces: string[]): void {
    this.#findBestPath(word);
    const cuts = this.#fusedCuts(word);
    let start = 0;
    for (const cut of cuts) {
      pieces.push(word.slice(start, cut));
      start = cut;
    }
    const settledChars = this.#settledChars(word.length);
    this.unsettledTokens = cuts.filter((cut) => cut > settledChars).length;
  }

  /** Fills, for every place in the word, the best score of a path to it and the place before it. */
  #findBestPath(word: string): void {
    if (this.#best.length <= word.length) {
      this.#best = new Float64Array(word.length * 2 + 1);
      this.#cameFrom = new Int32Array(word.length * 2 + 1);
    }
    const best = this.#best;
    const cameFrom = this.#cameFrom;
    cameFrom.fill(-1, 0, word.length + 1);
    best[0] = 0;
    for (let start = 0; start < word.length; start++) {
      if (start > 0 && cameFrom[start] === -1) continue; // inside a surrogate pair
      const scoreHere = best[start] ?? 0;
      const reach = (end: number, score: number) => {
        if (cameFrom[end] !== -1 && scoreHere + score <= (best[end] ?? 0)) return;
        best[end] = scoreHere + score;
        cameFrom[end] = start;
      };
      const next = start + ((word.codePointAt(start) ?? 0) > 0xffff ? 2 : 1);
      let coversOne = false;
      this.#trie.match(word, start, (end, id) => {
        reach(end, this.#scores[id] ?? 0);
        coversOne ||= end === next;
      });
      if (!coversOne) reach(next, this.#unknownScore);
    }
  }

  /** Ends of the best path's pieces, unknown neighbours joined. */
  #fusedCuts(word: string): number[] {
    const cuts: number[] = [];
    let laterIsUnknown = false;
    for (let end = word.length; end > 0;) {
      const start = this.#cameFrom[end] ?? 0;
      const isUnknown = !this.#trie.has(word.slice(start, end));
      if (!(isUnknown && laterIsUnknown)) cuts.push(end);
      laterIsUnknown = isUnknown;
      end = start;
    }
    return cuts.reverse();
  }

  /**
   * How far the best path is the same whatever follows: any longer path passes through one of the last places, so
   * what the best paths to all of these have in common stays.
   */
  #settledChars(length: number): number {
    const window = this.#trie.longest + NORMALIZER_REACH_CHARS;
    if (length <= window) return 0;
    let common = length;
    for (let place = length - 1; place >= length - window && common > 0; place--) {
      if (this.#cameFrom[place] !== -1) common = this.#commonPlace(common, place);
    }
    return common;
  }

  #commonPlace(a: number, b: number): number {
    while (a !== b) {
      if (a > b) a = this.#cameFrom[a] ?? 0;
      else b = this.#cameFrom[b] ?? 0;
    }
    return a;
  }
}

/** Whether a pre-tokenizer configuration starts a word at every ▁ (Metaspace, unless `split` is false). */
export function splitsAtMetaspace(preTokenizer: unknown): boolean {
  const json = JSON.stringify(preTokenizer) ?? "";
  return json.includes('"Metaspace"') && !json.includes('"split":false');
}
