/** Token ids equal those of the Python library `tokenizers`, for every fixture and for published vocabularies. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts";
import { runScript } from "../clients/python.ts";
import { copyOfFixture, editJson, fixture } from "../fixtures/fixtures.ts";
import { publishedTokenizers } from "../setup/tokenizers.ts";
import { letters, nastyTexts, whiteSpaceTexts } from "./nasty-texts.ts";

setDefaultTimeout(300_000);

const TEXTS = [...nastyTexts(600), ...whiteSpaceTexts(4), letters(100_001), "a".repeat(100_001)];

/** Fixtures with a tokenizer that none before them has. */
function distinctFixtures(): string[] {
  const seen = new Set<string>();
  return readdirSync(fixture("")).filter((name) => {
    const path = join(fixture(name), "tokenizer.json");
    const content = existsSync(path) ? readFileSync(path, "utf8") : undefined;
    return content !== undefined && !seen.has(content) && seen.add(content);
  });
}

/** Content and flags of tokens that no fixture has. */
const STRIPPING = [
  ["<L>", { lstrip: true }],
  ["<R>", { rstrip: true }],
  ["<LR>", { lstrip: true, rstrip: true }],
  ["qat", { single_word: true }],
  ["éclair", { normalized: true }],
] as const;

/** A copy of a fixture's tokenizer with these tokens as well. */
function withStrippingTokens(name: string): string {
  const directory = copyOfFixture(name);
  editJson<{ added_tokens: { id: number }[] }>(join(directory, "tokenizer.json"), (content) => {
    const plain = { lstrip: false, rstrip: false, single_word: false, normalized: false };
    const vocabSize = Tokenizer.load(fixture(name)).vocabSize;
    content.added_tokens.push(
      ...STRIPPING.map(([text, flags], i) => ({
        ...{ id: vocabSize + i, content: text, special: false, ...plain, ...flags },
      })),
    );
  });
  return directory;
}

const STRIPPED = [
  "bert-mean",
  "bert-max",
  "roberta-mean",
  "qwen3-embed",
  "mistral-embed",
  "t5-encoder",
];

const DIRECTORIES: readonly (readonly [name: string, directory: string])[] = [
  ...distinctFixtures().map((name) => [name, fixture(name)] as const),
  ...STRIPPED.map((name) => [`${name} with tokens that strip`, withStrippingTokens(name)] as const),
  ...publishedTokenizers(),
];

const answers = z.array(z.array(z.array(z.int())));

/** By the reference, for each directory and text. */
const wanted = answers.parse(
  (
    await runScript(join(import.meta.dir, "parity.py"), {
      tokenizers: DIRECTORIES.map(([, directory]) => join(directory, "tokenizer.json")),
      texts: TEXTS,
    })
  )
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line)),
);

describe("ids equal those of the reference library:", () => {
  test.each(DIRECTORIES.map(([name, directory], i) => [name, directory, i] as const))(
    "%s",
    (_, directory, i) => {
      const tokenizer = Tokenizer.load(directory);
      TEXTS.forEach((text, j) => {
        expect([text.slice(0, 400), ...tokenizer.encode(text).ids]).toEqual([
          text.slice(0, 400),
          ...wanted[i]![j]!,
        ]);
      });
    },
  );
});

/** Less cannot be told apart. */
const LEAST_MICROSECONDS = 1000;

/** Of several runs the one that was disturbed least. */
function cpuMicroseconds(work: () => void): number {
  const runs = Array.from({ length: 3 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  });
  return Math.max(LEAST_MICROSECONDS, Math.min(...runs));
}

/** Eight times the letters may take this many times the work: quadratic work would be 64 times as much. */
const MOST_GROWTH = 24;

describe("a word of 100 001 letters takes work in proportion to its length:", () => {
  test.each(DIRECTORIES)("%s", (_, directory) => {
    const tokenizer = Tokenizer.load(directory);
    const encode = (count: number) => () => void tokenizer.encode(letters(count));
    encode(12_500)(); // compiled by now
    const short = cpuMicroseconds(encode(12_500));
    const long = cpuMicroseconds(encode(100_001));
    expect(long / short).toBeLessThan(MOST_GROWTH);
  });
});
