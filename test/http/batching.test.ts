import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { embed, embedNative, embedOne, expectVector, expectVectors } from "./answers.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-mean")];
const texts = shuffledTexts(40, 90);

interface Single {
  readonly text: string;
  readonly vector: readonly number[];
  readonly tokens: number;
}

let server: Server;
const singles: Single[] = [];
beforeAll(async () => {
  server = await startServer([...MODEL, "--embedding-queue-depth", "512"]);
  for (const text of texts) {
    const { vectors, tokens } = await embed(server, { input: text });
    singles.push({ text, vector: vectors[0] ?? [], tokens });
  }
});
afterAll(() => server?.stop());

describe("many items", () => {
  test("a list longer than a batch keeps its order on every route, each item as if alone", async () => {
    const vectors = singles.map((single) => single.vector);
    const answer = await embed(server, { input: texts });
    expectVectors(answer.vectors, vectors);
    expect(answer.tokens).toBe(singles.reduce((sum, single) => sum + single.tokens, 0));
    expectVectors(await embedNative(server, { input: texts }, "/embedding"), vectors);
    expectVectors(await embedNative(server, { content: texts }, "/embeddings"), vectors);
  });

  test("equal items of one list have equal vectors and each count their tokens", async () => {
    const answer = await embed(server, { input: ["vector", "search", "vector", "vector"] });
    const [a, b, c, d] = answer.vectors;
    expect([c, d]).toEqual([a, a]);
    expect(b).not.toEqual(a);
    expect(answer.tokens).toBe(12);
  });

  test.each([1, 3, 16])("rows per forward are invisible: %d", async (rows) => {
    await using capped = await startServer([...MODEL, "--embedding-batch-size", String(rows)]);
    const answer = await embed(capped, { input: texts });
    expectVectors(
      answer.vectors,
      singles.map((single) => single.vector),
    );
    const mixed = ["a", words(300), "b c", "你好"];
    const { vectors } = await embed(capped, { input: mixed });
    for (const [i, text] of mixed.entries())
      expectVector(vectors[i] ?? [], await embedOne(capped, text));
  });

  test("a token budget below one row still serves rows one by one", async () => {
    await using tight = await startServer([...MODEL, "--batch-tokens", "4"]);
    const answer = await embed(tight, { input: texts });
    expectVectors(
      answer.vectors,
      singles.map((single) => single.vector),
    );
  });
});

describe("16-bit weights", () => {
  test.each(["bert-f16", "bert-bf16"])(
    "%s: a row's vector does not depend on longer neighbours",
    async (name) => {
      await using half = await startServer(["--embedding-model", fixture(name)]);
      const alone = await embedOne(half, "short probe");
      for (const count of [1, 7, 30, 61, 62, 63, 64, 85, 86, 87]) {
        const { vectors } = await embed(half, { input: ["short probe", words(count)] });
        expectVector(vectors[0] ?? [], alone);
        expect(vectors[1]?.every(Number.isFinite)).toBe(true);
      }
    },
  );
});

describe("many clients", () => {
  test("every answer is its own request's, with its own usage", async () => {
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(
        singles.map(async ({ text, vector, tokens }, i) => {
          if ((i + round) % 2) {
            expectVectors(await embedNative(server, { input: text }), [vector]);
          } else {
            const answer = await embed(server, { input: text });
            expectVectors(answer.vectors, [vector]);
            expect(answer.tokens).toBe(tokens);
          }
          return true;
        }),
      );
      expect(answers).toHaveLength(singles.length);
    }
  });

  test("options of one request do not reach another in the same batch", async () => {
    const text = texts[0] ?? "";
    const vector = singles[0]?.vector ?? [];
    const dimensions = Array.from({ length: 32 }, (_, i) => i + 1);
    const answers = await Promise.all(
      dimensions.map((count) => embedOne(server, text, { dimensions: count })),
    );
    expect(answers.map((answer) => answer.length)).toEqual(dimensions);
    expectVector(await embedOne(server, text), vector);
  });
});
