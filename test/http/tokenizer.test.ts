import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { CheckpointCopy, expected, fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { badRequest, embed, embedOne, expectDifferent, expectVector, okJson } from "./answers.ts";
import { tokenize } from "./tokens.ts";
import { words } from "./texts.ts";

setDefaultTimeout(60_000);

const CLS = 2;
const SEP = 3;
const UNKNOWN = 1;
const VOCABULARY = 1000;
const Pieces = z.strictObject({
  tokens: z.array(z.strictObject({ id: z.number(), piece: z.string() })),
});
const Content = z.strictObject({ content: z.string() });

let server: Server;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture("bert-mean")]);
});
afterAll(() => server?.stop());

async function detokenize(tokens: readonly number[]): Promise<string> {
  return Content.parse(await okJson(await server.post("/detokenize", { tokens }))).content;
}

describe("/tokenize and /detokenize", () => {
  const texts = expected("bert-mean").cases.filter((entry) => typeof entry.input === "string");

  test.each(texts)("add_special gives the row that the model sees: $name", async (entry) => {
    const ids = await tokenize(server, String(entry.input), { add_special: true });
    if (ids.length <= entry.prompt_tokens) expect(ids).toEqual(entry.token_ids);
    else expect(ids.slice(0, entry.prompt_tokens - 1)).toEqual(entry.token_ids.slice(0, -1));
    expect(await tokenize(server, String(entry.input))).toEqual(ids.slice(1, -1));
  });

  test("with_pieces gives each id with its text", async () => {
    const body = { content: "vector search", with_pieces: true };
    const { tokens } = Pieces.parse(await okJson(await server.post("/tokenize", body)));
    expect(tokens.map((token) => token.piece)).toEqual(["vector", "search"]);
    expect(tokens.map((token) => token.id)).toEqual(await tokenize(server, "vector search"));
  });

  test("what was tokenized reads the same when detokenized", async () => {
    expect(await detokenize(await tokenize(server, "Vector  search"))).toBe("vector search");
    expect(await detokenize([])).toBe("");
  });

  test("an empty text has no tokens", async () => {
    expect(await tokenize(server, "")).toEqual([]);
    expect(await tokenize(server, "", { add_special: true })).toEqual([CLS, SEP]);
  });

  test("a text beyond the model's limit is tokenized whole", async () => {
    expect(await tokenize(server, words(5000))).toHaveLength(5000);
  });

  const wrong: [string, unknown, string | null][] = [
    ["/tokenize", {}, "content"],
    ["/tokenize", { content: 5 }, "content"],
    ["/tokenize", { content: ["a"] }, "content"],
    ["/tokenize", { content: "a", add_special: "yes" }, "add_special"],
    ["/tokenize", { content: "a", model: "gpt-4o" }, "model"],
    ["/detokenize", {}, "tokens"],
    ["/detokenize", { tokens: "a" }, "tokens"],
    ["/detokenize", { tokens: [2, -1] }, "tokens[1]"],
    ["/detokenize", { tokens: [VOCABULARY] }, "tokens[0]"],
    ["/detokenize", { tokens: [1.5] }, "tokens[0]"],
    ["/detokenize", { tokens: [2], model: "gpt-4o" }, "model"],
  ];
  test.each(wrong)("%s %j is a 400 that names %s", async (path, body, param) => {
    expect((await badRequest(server, body, path)).param).toBe(param);
  });

  test("model may name the embedder", async () => {
    expect(await tokenize(server, "vector", { model: "bert-mean" })).toHaveLength(1);
  });
});

describe("settings baked into tokenizer.json", () => {
  const paddings = [
    { strategy: { Fixed: 128 }, direction: "Right", pad_to_multiple_of: null },
    { strategy: { Fixed: 32 }, direction: "Left", pad_to_multiple_of: null },
    { strategy: "BatchLongest", direction: "Right", pad_to_multiple_of: 64 },
  ];
  test.each(paddings)("padding never reaches the model or the usage: %j", async (padding) => {
    const specials = { pad_id: 0, pad_type_id: 0, pad_token: "[PAD]" };
    const copy = new CheckpointCopy("bert-mean").set("tokenizer.json", {
      padding: { ...padding, ...specials },
    });
    await using padded = await startServer(["--embedding-model", copy.directory]);
    for (const text of ["vector", words(40), ["vector", words(20)]]) {
      const plain = await embed(server, { input: text });
      const answer = await embed(padded, { input: text });
      expect(answer.tokens).toBe(plain.tokens);
      answer.vectors.forEach((vector, i) => expectVector(vector, plain.vectors[i] ?? []));
    }
    expect((await embed(padded, { input: "vector" })).tokens).toBe(3);
  });

  test.each([
    [true, null, true],
    [true, true, true],
    [true, false, false],
    [false, null, false],
    [false, false, false],
  ])(
    "lowercase %s with strip_accents %s: accents stripped is %s",
    async (lowercase, strip, stripped) => {
      const copy = new CheckpointCopy("bert-mean")
        .edit("tokenizer.json", (file) => ({
          ...file,
          normalizer: {
            type: "BertNormalizer",
            clean_text: true,
            handle_chinese_chars: true,
            strip_accents: strip,
            lowercase,
          },
        }))
        .set("tokenizer_config.json", { do_lower_case: lowercase, strip_accents: strip });
      await using variant = await startServer(["--embedding-model", copy.directory]);
      const [accented, plain] = [await embedOne(variant, "Café"), await embedOne(variant, "cafe")];
      if (stripped) expectVector(accented, plain);
      else expectDifferent(accented, plain);
    },
  );
});

describe("the text is read as the reference reads it", () => {
  test.each([
    ["好world大", "好 world 大"],
    ["vector\r\nsearch", "vector search"],
    ["vector\t \u00a0\u3000search\n", "vector search"],
    ["VECTOR Search", "vector search"],
    ["vec\u0000tor\ufffd", "vector"],
    ["search,search", "search , search"],
  ])("%j as %j", async (text, same) => {
    expect(await tokenize(server, text)).toEqual(await tokenize(server, same));
    expectVector(await embedOne(server, text), await embedOne(server, same));
  });

  test("a word above 100 letters is one unknown token", async () => {
    expect(await tokenize(server, "a".repeat(101))).toEqual([UNKNOWN]);
    expect(await tokenize(server, "a".repeat(100))).not.toContain(UNKNOWN);
  });

  test.each([10_000, 100_000, 1_000_000])(
    "an unbroken word of %d letters costs no more than text",
    async (length) => {
      const [endless, short] = await Promise.all([
        embed(server, { input: "a".repeat(length) }),
        embed(server, { input: "vector" }),
      ]);
      expect(endless.tokens).toBe(3);
      expect(short.tokens).toBe(3);
    },
  );

  test.each([
    ["CJK", "好"],
    ["punctuation", "?"],
    ["blanks", " "],
    ["combining accents", "e\u0301"],
    ["special tokens", "[SEP]"],
    ["emoji", "👩‍👩‍👧"],
  ])("100 000 repetitions of %s are answered", async (_, unit) => {
    const answer = await embed(server, { input: unit.repeat(100_000) });
    expect(answer.tokens).toBeGreaterThanOrEqual(2);
    expect(answer.tokens).toBeLessThanOrEqual(96);
  });
});
