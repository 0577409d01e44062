/** Every family of embedders through the server: the reference's numbers, and the faults that each invites. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { CheckpointCopy, expected, fixture, floatsOf, type TensorTable } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import {
  embed,
  embedOne,
  expectAlive,
  expectDifferent,
  expectVector,
  expectVectors,
} from "./answers.ts";
import { expectRanks, pairLimit, rank } from "./rankings.ts";
import { tokenize } from "./tokens.ts";
import { shuffledTexts } from "./texts.ts";

setDefaultTimeout(60_000);

const FAMILIES = [
  "roberta-mean",
  "xlm-roberta-mean",
  "xlm-roberta-cls",
  "modernbert-mean",
  "modernbert-cls",
  "qwen3-embed",
  "qwen2-embed-bidirectional",
  "mistral-embed",
  "ministral3-embed",
  "gemma3-embed",
  "embedding-gemma2-text",
];

const Prompts = z.object({
  cases: z.array(z.looseObject({ prompt: z.looseObject({ name: z.string() }).optional() })),
});

/** The reference's cases, each with the name of its prompt, if any. */
function promptedCases(name: string) {
  const file = readFileSync(join(fixture(name), "expected.json"), "utf8");
  const { cases } = Prompts.parse(JSON.parse(file));
  return expected(name).cases.map((entry, i) => ({ ...entry, promptName: cases[i]?.prompt?.name }));
}

describe.each(FAMILIES)("%s", (name) => {
  const all = promptedCases(name);
  let server: Server;
  beforeAll(async () => {
    server = await startServer(["--embedding-model", fixture(name)]);
  });
  afterAll(() => server?.stop());

  test("every case alone gives the reference's vector and its count of tokens", async () => {
    for (const { input, promptName, embedding, prompt_tokens } of all) {
      const answer = await embed(server, { input, prompt_name: promptName });
      expectVectors(answer.vectors, [embedding]);
      expect(answer.tokens).toBe(prompt_tokens);
    }
  });

  test("all texts in one request give the same: padding moves no position", async () => {
    const texts = all.filter(({ input, promptName }) => typeof input === "string" && !promptName);
    const answer = await embed(server, { input: texts.map(({ input }) => input) });
    expectVectors(
      answer.vectors,
      texts.map(({ embedding }) => embedding),
    );
    expect(answer.tokens).toBe(texts.reduce((sum, entry) => sum + entry.prompt_tokens, 0));
  });

  test("a text's own ids, sent verbatim, give its vector", async () => {
    for (const { token_ids, embedding } of all) {
      expectVector(await embedOne(server, token_ids), embedding);
    }
  });
});

describe("RoBERTa's positions", () => {
  test.each(["roberta-mean", "xlm-roberta-mean"])(
    "%s: a short text is the same alone and beside texts of every length",
    async (name) => {
      await using server = await startServer(["--embedding-model", fixture(name)]);
      const alone = await embedOne(server, "hello");
      for (const text of shuffledTexts(10, 90)) {
        const { vectors } = await embed(server, { input: ["hello", text] });
        expectVector(vectors[0] ?? [], alone);
        expectVector(vectors[1] ?? [], await embedOne(server, text));
      }
    },
  );
});

describe("Qwen3's end-of-text token", () => {
  const END = 640;

  test("is appended to texts and counted, and never to ids", async () => {
    await using server = await startServer(["--embedding-model", fixture("qwen3-embed")]);
    const text = await embed(server, { input: "ABCDEF" });
    const ids = await tokenize(server, "ABCDEF");
    expect(ids).not.toContain(END);
    expect(text.tokens).toBe(ids.length + 1);
    const [vector = []] = text.vectors;
    expectVector(await embedOne(server, [...ids, END]), vector);
    expectDifferent(await embedOne(server, ids), vector);
    expect((await embed(server, { input: [ids] })).tokens).toBe(ids.length);
  });

  test("stays the last token of a text that is cut", async () => {
    await using server = await startServer(["--embedding-model", fixture("qwen3-embed")]);
    const text = "the old fox ".repeat(500);
    const limit = expected("qwen3-embed").max_length;
    const answer = await embed(server, { input: text });
    expect(answer).toMatchObject({ tokens: limit, truncated: "1" });
    const ids = await tokenize(server, text);
    const kept = [...ids.slice(0, limit - 1), END];
    expectVector(answer.vectors[0] ?? [], await embedOne(server, kept));
  });
});

/** Every f32 in the f16 that is nearest to it. */
function toFloat16(table: TensorTable): TensorTable {
  return new Map(
    [...table].map(([name, tensor]) => {
      if (tensor.dtype !== "F32") return [name, tensor];
      const bytes = new Uint8Array(Float16Array.from(floatsOf(tensor)).buffer);
      return [name, { dtype: "F16", shape: tensor.shape, bytes }];
    }),
  );
}

describe("a 16-bit ModernBERT", () => {
  const CLS = 644;
  const SEP = 645;
  const lengths = [11, 12, 13, 127, 128, 129, 255, 256, 257, 288];

  test.each([12, 128])(
    "with windows of %d tokens: finite, and no row depends on a longer neighbour",
    async (window) => {
      const copy = new CheckpointCopy("modernbert-mean")
        .set("config.json", { max_position_embeddings: 512, local_attention: window })
        .set("sentence_bert_config.json", { max_seq_length: 512 })
        .set("tokenizer_config.json", { model_max_length: 512 })
        .tensors(toFloat16);
      await using server = await startServer(["--embedding-model", copy.directory]);
      const probe = await tokenize(server, "short probe", { add_special: true });
      const alone = await embedOne(server, probe);
      for (const length of lengths) {
        const inner = Array.from({ length: length - 2 }, (_, i) => 100 + ((i * 37) % 500));
        const long = [CLS, ...inner, SEP];
        const answer = await embed(server, { input: [probe, long] });
        expect(answer.tokens).toBe(probe.length + length);
        expectVector(answer.vectors[0] ?? [], alone);
        expectVector(answer.vectors[1] ?? [], await embedOne(server, long));
      }
    },
  );
});

describe("one endless word", () => {
  /** Work that grows with the square of this would not end within the test's time. */
  const LETTERS = 1_000_000;
  const same = "a".repeat(LETTERS);
  const mixed = Array.from({ length: LETTERS }, (_, i) =>
    String.fromCharCode(97 + ((Math.imul(i + 1, 2654435761) >>> 16) % 26)),
  ).join("");

  test.each([
    "roberta-mean",
    "modernbert-cls",
    "qwen3-embed",
    "xlm-roberta-mean",
    "xlm-roberta-cls",
  ])("%s cuts it at the limit, and others are not starved", async (name) => {
    await using server = await startServer(["--embedding-model", fixture(name)]);
    const limit = expected(name).max_length;
    for (const word of [same, mixed, "é".repeat(LETTERS), "猫".repeat(LETTERS)]) {
      const [answer] = await Promise.all([embed(server, { input: word }), expectAlive(server)]);
      expect(answer).toMatchObject({ tokens: limit, truncated: "1" });
      // Nothing behind the limit matters.
      const tenth = await embedOne(server, word.slice(0, LETTERS / 10));
      expectVector(answer.vectors[0] ?? [], tenth);
    }
  });

  test("bert-mean reads it as one unknown token", async () => {
    await using server = await startServer(["--embedding-model", fixture("bert-mean")]);
    for (const word of [same, mixed]) {
      const answer = await embed(server, { input: word });
      expect(answer).toMatchObject({ tokens: 3, truncated: null });
    }
  });

  test.each(["rerank-roberta", "rerank-xlm-roberta", "rerank-qwen3-seqcls", "rerank-qwen3"])(
    "%s: as a query and as a document",
    async (name) => {
      await using server = await startServer(["--reranker-model", fixture(name)]);
      for (const body of [
        { query: same, documents: ["a fox", mixed] },
        { query: "a fox", documents: [mixed, same] },
      ]) {
        const [answer] = await Promise.all([rank(server, body), expectRanks(server)]);
        expect(answer).toMatchObject({ tokens: 2 * pairLimit(name), truncated: "2" });
      }
    },
  );
});
