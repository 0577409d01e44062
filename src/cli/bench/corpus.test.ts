import { expect, test } from "bun:test";
import { between, CorpusWriter, random, type CountTokens } from "./corpus.ts";

/** One token per word and two specials. */
const byWord: CountTokens = async (text) => text.split(" ").filter(Boolean).length + 2;
/** Three letters per token, and no specials: words have different sizes, and blanks count. */
const byLetters: CountTokens = async (text) => Math.ceil(text.length / 3);

async function texts(count: CountTokens, lengths: readonly number[]) {
  const writer = await CorpusWriter.create(count);
  const next = random(1);
  const written: string[] = [];
  for (const length of lengths) written.push((await writer.text(next, length)).text);
  return { written, writer };
}

test("the same texts on every run, and no two alike", async () => {
  const lengths = Array.from({ length: 300 }, (_, i) => 3 + (i % 3));
  const { written } = await texts(byWord, lengths);
  expect((await texts(byWord, lengths)).written).toEqual(written);
  expect(new Set(written).size).toBe(written.length);
});

test("texts have exactly the tokens that are asked for, specials included", async () => {
  const { written, writer } = await texts(byWord, [20, 200, 512]);
  expect(writer.specials).toBe(2);
  expect(await Promise.all(written.map(byWord))).toEqual([20, 200, 512]);
});

test("where the tokens of words do not add up, texts have a few less, never more", async () => {
  const lengths = Array.from({ length: 50 }, (_, i) => 20 + 10 * i);
  const { written } = await texts(byLetters, lengths);
  for (const [i, text] of written.entries()) {
    const tokens = await byLetters(text);
    expect(tokens).toBeWithin((lengths[i] ?? 0) * 0.9 - 3, (lengths[i] ?? 0) + 1);
  }
});

test("what is counted is the text as it is sent", async () => {
  const writer = await CorpusWriter.create(byLetters);
  const { text, tokens } = await writer.text(random(5), 64);
  expect(tokens).toBe(await byLetters(text));
});

test("between reaches both ends and nothing else", () => {
  const next = random(3);
  const drawn = new Set(Array.from({ length: 500 }, () => between(next, 6, 9)));
  expect([...drawn].sort()).toEqual([6, 7, 8, 9]);
});
