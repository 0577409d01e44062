import { join } from "node:path";
import { expect, test } from "bun:test";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { Tokenizer } from "./tokenizer.ts";

const NO_LIMIT = 10_000;

interface Stored {
  post_processor: unknown;
}

function withProcessor(name: string, processor: unknown): Tokenizer {
  const directory = copyOfFixture(name);
  editJson<Stored>(join(directory, "tokenizer.json"), (stored) => {
    stored.post_processor = processor;
  });
  return Tokenizer.load(directory);
}

function pair(tokenizer: Tokenizer, first: string, second: string, maxLength = NO_LIMIT) {
  const { ids, typeIds, truncated } = tokenizer.pairsWith(first, maxLength).with(second);
  return { ids: [...ids], typeIds: typeIds && [...typeIds], truncated };
}

/** Without special tokens. */
function content(tokenizer: Tokenizer, text: string): number[] {
  return [...tokenizer.encode(text, { addSpecial: false }).ids];
}

const bert = Tokenizer.load(fixture("rerank-bert"));
const a = content(bert, "soft eggs");
const b = content(bert, "boil them");
const [cls, sep] = [2, 3];

test("a BERT template puts the second text and its separator into type 1", () => {
  expect(pair(bert, "soft eggs", "boil them")).toEqual({
    ids: [cls, ...a, sep, ...b, sep],
    typeIds: [0, ...a.map(() => 0), 0, ...b.map(() => 1), 1],
    truncated: false,
  });
});

test("BertProcessing gives what the template gives", () => {
  const classic = withProcessor("rerank-bert", {
    type: "BertProcessing",
    sep: ["[SEP]", sep],
    cls: ["[CLS]", cls],
  });
  expect(pair(classic, "soft eggs", "boil them")).toEqual(pair(bert, "soft eggs", "boil them"));
});

test.each(["rerank-roberta", "rerank-xlm-roberta"])("%s: two separators, no types", (name) => {
  const tokenizer = Tokenizer.load(fixture(name)); // RobertaProcessing and a template
  const [first, second] = ["soft eggs", "boil them"].map((text) => content(tokenizer, text));
  expect(pair(tokenizer, "soft eggs", "boil them")).toEqual({
    ids: [0, ...first!, 2, 2, ...second!, 2],
    typeIds: undefined,
    truncated: false,
  });
});

test("without a processor, or one that only concerns offsets, the texts follow each other", () => {
  for (const processor of [null, { type: "ByteLevel" }, { type: "Sequence", processors: [] }]) {
    const plain = withProcessor("rerank-bert", processor);
    expect(pair(plain, "soft eggs", "boil them").ids).toEqual([...a, ...b]);
  }
});

test("a limit of 10 leaves 7 tokens: 2 + 20 keep 2 + 5, 20 + 20 keep 3 + 4", () => {
  const words = (count: number) => "x ".repeat(count);
  const [short, long] = [words(2), words(20)];
  expect(content(bert, short)).toHaveLength(2);
  const lengthsOf = (first: string, second: string) => {
    const { ids, typeIds, truncated } = pair(bert, first, second, 10);
    expect(ids).toHaveLength(10);
    expect(truncated).toBe(true);
    const inSecond = typeIds!.filter((type) => type === 1).length - 1;
    return [10 - 3 - inSecond, inSecond];
  };
  expect(lengthsOf(short, long)).toEqual([2, 5]);
  expect(lengthsOf(long, short)).toEqual([5, 2]);
  expect(lengthsOf(long, long)).toEqual([3, 4]);
  expect(lengthsOf(`${long} x`, long)).toEqual([4, 3]);
});

test("a cut keeps the texts' beginnings", () => {
  const { ids } = pair(bert, "soft eggs", "boil them", 10);
  expect(ids).toEqual([cls, ...a.slice(0, 3), sep, ...b.slice(0, 4), sep]);
});

test("huge texts are not tokenized to their ends", () => {
  const huge = "the quick brown fox ".repeat(500_000); // 10 MB: seconds if it were read whole
  const expected = "the quick brown fox ".repeat(500);
  expect(pair(bert, huge, "short", 64)).toEqual(pair(bert, expected, "short", 64));
  expect(pair(bert, "short", huge, 64)).toEqual(pair(bert, "short", expected, 64));
  expect(pair(bert, huge, huge, 64)).toEqual(pair(bert, expected, expected, 64));
});

test("a special token that is written out counts as one, half a surrogate pair as U+FFFD", () => {
  expect(pair(bert, "[SEP]", "\ud800").ids).toEqual(pair(bert, "[SEP]", "\ufffd").ids);
  expect(pair(bert, "[SEP]", "x").ids.slice(0, 3)).toEqual([cls, sep, sep]);
});
