import { describe, expect, spyOn, test } from "bun:test";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { TextPipeline } from "./text-pipeline.ts";
import { Tokenizer } from "./tokenizer.ts";

/** One of each kind: WordPiece, byte-level BPE with several splitting rules, BPE over a whole text, Unigram. */
const NAMES = [
  "bert-mean",
  "roberta-mean",
  "qwen3-embed",
  "ministral3-embed",
  "modernbert-mean",
  "mistral-embed",
  "gemma3-embed",
  "xlm-roberta-cls",
  "xlm-roberta-mean",
];

const ALPHABETS: Readonly<Record<string, readonly string[]>> = {
  words: ["the ", "quick ", "brown, ", "foxes' ", "jump. ", "\n", "2024 ", "I'll "],
  letters: [..."abcdefghijklmnopqrstuvwxyz"],
  "one letter": ["a"],
  "word without spaces": ["hello"],
  Chinese: [..."中文字符测试你好世界，。"],
  emoji: ["👩‍👩‍👧", "👍🏽", "🇫🇷", "❤️", "😀"],
  "white space": [" ", "  ", "\n", "\t", "\u00a0", "\u3000", "\u2003"],
  "rare words in white space": [...new Array<string>(60).fill(" "), "x", "\n", "<mask>", "[MASK]"],
  "combining marks": ["e\u0301", "a\u0308\u0323", "\u0301", "\u1100", "\u1161", "n"],
  punctuation: [..."!?.,;:-—…\"'()[]{}<>/\\|@#$%^&*"],
  digits: [..."0123456789"],
  "special tokens": ["[MASK]", "<mask>", "</s>", "<|endoftext|>", " ", "x", "[MA", "SK]"],
};

const LENGTH_CHARS = 20_000;

function randomText(parts: readonly string[], seed: number): string {
  let state = seed;
  let text = "";
  while (text.length < LENGTH_CHARS) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += parts[(state % 65_536) % parts.length];
  }
  return text;
}

describe("a cut text has the first tokens of the whole text", () => {
  test.each(NAMES)("%s", (name) => {
    const tokenizer = Tokenizer.load(fixture(name));
    for (const [kind, parts] of Object.entries(ALPHABETS)) {
      const text = randomText(parts, 1);
      const whole = tokenizer.encode(text, { addSpecial: false }).ids;
      for (const maxLength of [1, 256, 1000]) {
        const cut = tokenizer.encode(text, { addSpecial: false, maxLength });
        expect([kind, ...cut.ids]).toEqual([kind, ...whole.subarray(0, maxLength)]);
        expect(cut.truncated).toBe(whole.length > maxLength);
      }
    }
  });
});

/** Encodes a long text to `wanted` tokens and tells how many characters the tokenizer went through for it. */
function charactersSeen(name: string, text: string, maxLength: number, wanted = maxLength): number {
  const tokenizer = Tokenizer.load(fixture(name));
  const encode = spyOn(TextPipeline.prototype, "encode");
  try {
    expect(tokenizer.encode(text, { maxLength }).ids).toHaveLength(wanted);
    return encode.mock.calls.reduce((seen, [part]) => seen + part.length, 0);
  } finally {
    encode.mockRestore();
  }
}

test("ten megabytes of words cost no more than the limit asks for", () => {
  const text = "several words ".repeat(750_000);
  for (const name of NAMES) expect(charactersSeen(name, text, 256)).toBeLessThan(20_000);
});

test("ten megabytes without a space cost no more than the limit asks for", () => {
  for (const name of NAMES) {
    expect(charactersSeen(name, "中文字符".repeat(2_500_000), 256)).toBeLessThan(40_000);
  }
});

test("100 000 equal letters are cut at the limit", () => {
  for (const name of NAMES.filter((name) => name !== "bert-mean")) {
    expect(charactersSeen(name, "a".repeat(100_000), 256)).toBeLessThan(300_000);
  }
});

test("a WordPiece word of ten megabytes, marks included, is one unknown token at a bounded cost", () => {
  const wanted = Tokenizer.load(fixture("bert-mean")).encode(`${"w".repeat(200)} end`).ids.length;
  for (const letter of ["w", "e\u0301\u0323"]) {
    const text = `${letter.repeat(10_000_000 / letter.length)} end`;
    expect(charactersSeen("bert-mean", text, 256, wanted)).toBeLessThan(1_000_000);
  }
});

test("a text of 300 000 tokens is encoded whole where there is no limit", () => {
  const text = "中文字符".repeat(75_000);
  for (const name of ["bert-mean", "mistral-embed", "xlm-roberta-cls"]) {
    expect(Tokenizer.load(fixture(name)).encode(text).ids.length).toBeGreaterThan(290_000);
  }
});
