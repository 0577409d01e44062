import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import {
  copyOfFixture,
  editJson,
  fixture,
  temporaryDirectory,
  tokenizerFixtures,
} from "../../test/fixtures/fixtures.ts";
import { refusalOf } from "../../test/refusal.ts";
import { Tokenizer } from "./tokenizer.ts";

interface Expected {
  readonly max_length: number;
  readonly cases: readonly {
    readonly name: string;
    readonly input: string | readonly number[];
    readonly prompt?: { readonly text: string } | null;
    readonly task?: string | null;
    readonly token_ids: readonly number[];
  }[];
}

interface Stored {
  normalizer: Record<string, unknown> & { type: string };
  post_processor: unknown;
  model: Record<string, unknown>;
  padding: unknown;
  truncation: unknown;
}

/** The tokenizer of a fixture with another tokenizer.json. */
function changed(name: string, change: (stored: Stored) => void): Tokenizer {
  const directory = copyOfFixture(name);
  editJson(join(directory, "tokenizer.json"), change);
  return Tokenizer.load(directory);
}

const bert = Tokenizer.load(fixture("bert-mean"));
const idsOf = (tokenizer: Tokenizer, text: string) => [...tokenizer.encode(text).ids];

describe("ids equal the reference", () => {
  test.each(tokenizerFixtures())("%s", (name) => {
    const expected: Expected = JSON.parse(
      readFileSync(join(fixture(name), "expected.json"), "utf8"),
    );
    const tokenizer = Tokenizer.load(fixture(name));
    // Rows of a ColBERT task are put together outside of the tokenizer.
    const texts = expected.cases.filter(
      (example) => typeof example.input === "string" && !example.task,
    );
    expect(texts.length).toBeGreaterThan(10);
    for (const { name: example, input, prompt, token_ids } of texts) {
      const { ids } = tokenizer.encode((prompt?.text ?? "") + input, {
        maxLength: expected.max_length,
      });
      expect([example, ...ids]).toEqual([example, ...token_ids]);
    }
  });
});

test("specials around a text come from the post-processor", () => {
  const specials = (name: string) => {
    const { singlePrefix, singleSuffix } = Tokenizer.load(fixture(name));
    return [[...singlePrefix], [...singleSuffix]];
  };
  expect(specials("bert-mean")).toEqual([[2], [3]]); // TemplateProcessing
  expect(specials("roberta-mean")).toEqual([[0], [2]]); // RobertaProcessing
  expect(specials("qwen3-embed")).toEqual([[], [640]]); // ByteLevel, then a template
  expect(specials("llama-bidirec")).toEqual([[640], []]);
  const classic = changed("bert-mean", (stored) => {
    stored.post_processor = { type: "BertProcessing", sep: ["[SEP]", 3], cls: ["[CLS]", 2] };
  });
  expect(idsOf(classic, "hello there")).toEqual(idsOf(bert, "hello there"));
  const none = changed("bert-mean", (stored) => {
    stored.post_processor = null;
  });
  expect(idsOf(none, "hello there")).toEqual(idsOf(bert, "hello there").slice(1, -1));
});

test("an unknown post-processor stops the load by name", () => {
  const load = () =>
    changed("bert-mean", (stored) => {
      stored.post_processor = { type: "Sequence", processors: [{ type: "Reversal" }] };
    });
  expect(refusalOf(load)).toContain('"Reversal"');
});

test("an unknown normalizer stops the load by name", () => {
  const load = () =>
    changed("bert-mean", (stored) => {
      stored.normalizer = { type: "Leetspeak" };
    });
  expect(refusalOf(load)).toContain("Leetspeak");
});

test("a missing or broken tokenizer.json is named", () => {
  expect(refusalOf(() => Tokenizer.load(temporaryDirectory("empty")))).toContain(
    "tokenizer.json is missing",
  );
  const directory = copyOfFixture("bert-mean");
  writeFileSync(join(directory, "tokenizer.json"), '{"model":');
  expect(refusalOf(() => Tokenizer.load(directory))).toContain("tokenizer.json is not valid JSON");
});

describe("a model that cannot be used is refused by what is wrong", () => {
  test.each([
    ["roberta-mean", { merges: undefined }, /"model\.merges" of the BPE model is missing/],
    ["roberta-mean", { merges: ["a b", "ab"] }, /model\.merges: must be a list of pairs/],
    ["roberta-mean", { merges: [["a", 1]] }, /model\.merges: must be a list of pairs/],
    ["roberta-mean", { unk_token: "<none>" }, /"model\.unk_token" is "<none>", .* not in/],
    ["bert-mean", { unk_token: "<none>" }, /"model\.unk_token" is "<none>", .* not in/],
    ["bert-mean", { unk_token: null }, /"model\.unk_token" of the WordPiece model is missing/],
    ["bert-mean", { vocab: {} }, /"model\.vocab" is empty/],
    ["bert-mean", { vocab: { "[UNK]": 2 ** 32 } }, /model\.vocab/],
    ["bert-mean", { vocab: { "[UNK]": -1 } }, /model\.vocab/],
    ["bert-mean", { vocab: [["a", 0]] }, /"model\.vocab" of a WordPiece model must map/],
    ["xlm-roberta-mean", { vocab: { a: 0 } }, /"model\.vocab" of a Unigram model must be a list/],
    ["xlm-roberta-mean", { vocab: [] }, /"model\.vocab" is empty/],
    ["xlm-roberta-mean", { unk_id: 1e6 }, /"model\.unk_id" is 1000000, which is not in/],
    ["xlm-roberta-mean", { unk_id: null }, /"model\.unk_id" of the Unigram model is missing/],
    ["xlm-roberta-mean", { byte_fallback: true }, /"model\.byte_fallback" of a Unigram model/],
  ])("%s %j", (name, model, wanted) => {
    const load = () =>
      changed(name, (stored) => {
        Object.assign(stored.model, model);
      });
    expect(refusalOf(load)).toMatch(wanted);
  });

  test("what WordPiece files may leave out is what the reference takes for it", () => {
    const terse = changed("bert-mean", ({ model }) => {
      delete model.unk_token;
      delete model.continuing_subword_prefix;
    });
    const text = "unaffable words \u{16a0}";
    expect(idsOf(terse, text)).toEqual(idsOf(bert, text));
    expect(idsOf(terse, text)).toContain(1);
  });

  test("a pipe in the place of tokenizer.json does not wait for ever", () => {
    const directory = temporaryDirectory("pipe");
    expect(Bun.spawnSync(["mkfifo", join(directory, "tokenizer.json")]).exitCode).toBe(0);
    expect(refusalOf(() => Tokenizer.load(directory))).toContain("is a pipe or a device");
  });
});

test("a row of one text holds it once", () => {
  const a = { Sequence: { id: "A", type_id: 0 } };
  const b = { Sequence: { id: "B", type_id: 0 } };
  const load = (single: object[], pair: object[]) => () =>
    changed("bert-mean", (stored) => {
      stored.post_processor = { type: "TemplateProcessing", single, pair, special_tokens: {} };
    });
  expect(load([a], [a, b])().encode("a").ids).toHaveLength(1);
  expect(refusalOf(load([a, a], [a, b]))).toContain("post_processor repeats a text");
  expect(refusalOf(load([a], [a, b, a]))).toContain("post_processor repeats a text");
  for (const single of [[], [b], [a, b]]) {
    expect(refusalOf(load(single, [a, b]))).toContain('must put one text, A, in "single"');
  }
});

test("lower-casing comes first, once", () => {
  const cased = fixture("roberta-mean");
  const lower = Tokenizer.load(cased, { lowerCase: true });
  expect(idsOf(lower, "Hello WORLD")).toEqual(idsOf(Tokenizer.load(cased), "hello world"));
  expect(idsOf(lower, "<mask> A")).toEqual(idsOf(Tokenizer.load(cased), "<mask> a"));
  const own = fixture("gemma3-embed");
  expect(idsOf(Tokenizer.load(own, { lowerCase: true }), "A  B")).toEqual(
    idsOf(Tokenizer.load(own), "a  b"),
  );
});

test("padding and truncation stored in tokenizer.json are ignored", () => {
  const padded = changed("bert-mean", (stored) => {
    stored.padding = {
      strategy: { Fixed: 128 },
      direction: "Right",
      pad_to_multiple_of: null,
      pad_id: 0,
      pad_type_id: 0,
      pad_token: "[PAD]",
    };
    stored.truncation = { direction: "Right", max_length: 8, strategy: "LongestFirst", stride: 0 };
  });
  for (const text of ["hello", "a text of more than eight tokens, as anybody can see"]) {
    expect(idsOf(padded, text)).toEqual(idsOf(bert, text));
  }
});

test("tokenizer_config.json has no say in the ids", () => {
  const directory = copyOfFixture("bert-lasttoken");
  const before = Tokenizer.load(directory);
  editJson<Record<string, unknown>>(join(directory, "tokenizer_config.json"), (config) => {
    config.do_lower_case = false;
    config.remove_space = true;
    config.do_lowercase_and_remove_accent = true;
  });
  const text = "  Café \n\n  CAFE [MASK]  x ";
  expect(idsOf(Tokenizer.load(directory), text)).toEqual(idsOf(before, text));
});

test("accents are stripped with lower-casing unless the file says otherwise", () => {
  const variant = (lowercase: boolean, stripAccents: boolean | null) =>
    changed("bert-mean", ({ normalizer }) => {
      normalizer.lowercase = lowercase;
      normalizer.strip_accents = stripAccents;
    });
  const same = (tokenizer: Tokenizer) =>
    Bun.deepEquals(idsOf(tokenizer, "café"), idsOf(tokenizer, "cafe"));
  expect(same(variant(true, null))).toBe(true);
  expect(same(variant(true, false))).toBe(false);
  expect(same(variant(false, null))).toBe(false);
  expect(same(variant(false, true))).toBe(true);
});

test("a capital sigma is lower-cased without regard to its neighbours", () => {
  expect(idsOf(bert, "ΣΑΣ")).toEqual(idsOf(bert, "σασ"));
});

test("Han characters are words of their own, within and beyond the 16-bit plane", () => {
  expect(idsOf(bert, "你好world")).toEqual(idsOf(bert, "你 好 world"));
  expect(idsOf(bert, "a𠀀b")).toEqual(idsOf(bert, "a 𠀀 b"));
});

test("words end, and texts are stripped, at Unicode's white space: U+0085 is some, U+FEFF is none", () => {
  const splitting = Tokenizer.load(fixture("xlm-roberta-mean"));
  expect(idsOf(splitting, "a\u0085b")).toEqual(idsOf(splitting, "a b"));
  const stripping = Tokenizer.load(fixture("rerank-deberta-v2"));
  for (const text of ["\u0085 a \u0085", "\ufeffa"]) {
    expect(idsOf(splitting, text)).toEqual([0, 17, 2]);
    expect(idsOf(stripping, text)).toEqual([1, 17, 2]);
  }
});

test("CRLF is one blank, blank text is specials only", () => {
  expect(idsOf(bert, "a\r\nb")).toEqual(idsOf(bert, "a b"));
  for (const blank of ["", " ", "\n\t", "\u200b"]) expect(idsOf(bert, blank)).toEqual([2, 3]);
});

test("a word over 100 characters is one unknown token", () => {
  expect(bert.encode("a".repeat(100)).ids.length).toBeGreaterThan(3);
  for (const length of [101, 100_000]) expect(idsOf(bert, "a".repeat(length))).toEqual([2, 1, 3]);
});

test("special tokens written out in a text are read as such", () => {
  expect(idsOf(bert, "a [MASK] b")).toContain(4);
  const qwen = Tokenizer.load(fixture("qwen3-embed"));
  expect(idsOf(qwen, "a<|endoftext|>b").filter((id) => id === 640)).toHaveLength(2);
});

test("half a surrogate pair counts as U+FFFD", () => {
  for (const name of ["bert-mean", "qwen3-embed", "xlm-roberta-cls"]) {
    const tokenizer = Tokenizer.load(fixture(name));
    expect(idsOf(tokenizer, "x\ud83d")).toEqual(idsOf(tokenizer, "x\ufffd"));
    expect(idsOf(tokenizer, "x\ude00y")).toEqual(idsOf(tokenizer, "x\ufffdy"));
  }
});

test("truncation cuts the text, keeps the specials and says so", () => {
  const whole = bert.encode("one two three four five six seven");
  expect(whole.truncated).toBe(false);
  const length = whole.ids.length;
  expect(bert.encode("one two three four five six seven", { maxLength: length })).toEqual(whole);
  const cut = bert.encode("one two three four five six seven", { maxLength: 5 });
  expect([...cut.ids]).toEqual([...whole.ids.subarray(0, 4), 3]);
  expect(cut.truncated).toBe(true);
  const bare = bert.encode("one two three four five six seven", {
    maxLength: 5,
    addSpecial: false,
  });
  expect([...bare.ids]).toEqual([...whole.ids.subarray(1, 6)]);
  expect([...bert.encode("one", { maxLength: 1 }).ids]).toEqual([2, 3]);
});

test("type ids appear where the template has some that are not 0", () => {
  expect(bert.encode("hello").typeIds).toBeUndefined();
  const typed = changed("bert-mean", (stored) => {
    stored.post_processor = {
      type: "TemplateProcessing",
      single: [
        { Sequence: { id: "A", type_id: 0 } },
        { SpecialToken: { id: "[CLS]", type_id: 2 } },
      ],
      pair: [],
      special_tokens: { "[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] } },
    };
  });
  const { ids, typeIds } = typed.encode("a b");
  expect(ids.at(-1)).toBe(2);
  expect([...(typeIds ?? [])]).toEqual([...new Array(ids.length - 1).fill(0), 2]);
});

test("vocabSize counts added tokens", () => {
  expect(bert.vocabSize).toBe(1000);
  expect(Tokenizer.load(fixture("qwen3-embed")).vocabSize).toBe(647);
});

test("decoding gives the text back, pieces the text of each token", () => {
  const qwen = Tokenizer.load(fixture("qwen3-embed"));
  const text = "Hello, wörld!\n  <|im_end|> 中文";
  const { ids } = qwen.encode(text, { addSpecial: false });
  expect(qwen.decode(ids)).toBe(text);
  expect(qwen.pieces(ids)).toHaveLength(ids.length);
  expect(qwen.pieces(ids).join("")).toContain("<|im_end|>");
  expect(bert.decode(bert.encode("Hello there").ids)).toBe("[CLS] hello there [SEP]");
  expect(bert.decode(new Int32Array())).toBe("");
});

test("ids outside of the vocabulary are a RangeError", () => {
  for (const id of [-1, 1000]) {
    expect(() => bert.decode(Int32Array.of(id))).toThrow(RangeError);
    expect(() => bert.pieces(Int32Array.of(id))).toThrow(RangeError);
  }
});
