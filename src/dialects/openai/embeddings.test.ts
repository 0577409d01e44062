import { expect, test } from "bun:test";
import { failureOf, jsonOf, result } from "../testing/context.ts";
import { openaiEmbeddings } from "./embeddings.ts";

const floats = { kind: "vectors", model: "tiny", encoding: "float" } as const;
const base64 = { kind: "vectors", model: "tiny", encoding: "base64" } as const;

test("vectors come in request order with index, model and usage", () => {
  expect(jsonOf(openaiEmbeddings.render(result([1, -2.5, 0.125, 0]), floats))).toEqual({
    object: "list",
    data: [
      { object: "embedding", index: 0, embedding: [1, -2.5] },
      { object: "embedding", index: 1, embedding: [0.125, 0] },
    ],
    model: "tiny",
    usage: { prompt_tokens: 6, total_tokens: 6 },
  });
});

test("base64 holds the little-endian f32 bytes, padded, without shape for one row", () => {
  const vectors = { ...result([1, -2.5, 0.125]), dim: 3, tokens: Int32Array.of(3) };
  expect(jsonOf(openaiEmbeddings.render(vectors, base64))).toMatchObject({
    data: [{ object: "embedding", index: 0, embedding: "AACAPwAAIMAAAAA+" }],
  });
});

test("multi-vector results are rows, and in base64 row-major bytes with their shape", () => {
  const rows = result([1, 2, 3, 4, 5, 6], [2, 1]);
  expect(jsonOf(openaiEmbeddings.render(rows, floats))).toMatchObject({
    data: [
      {
        embedding: [
          [1, 2],
          [3, 4],
        ],
      },
      { embedding: [[5, 6]] },
    ],
  });
  const bytes = Buffer.from(Float32Array.of(1, 2, 3, 4).buffer).toString("base64");
  expect(jsonOf(openaiEmbeddings.render(rows, base64))).toMatchObject({
    data: [{ embedding: bytes, shape: [2, 2] }, { shape: [1, 2] }],
  });
});

test("the model's name is escaped, whatever its letters", () => {
  const text = jsonOf(openaiEmbeddings.render(result([1, 2]), { ...floats, model: 'mötör "x"' }));
  expect(text).toMatchObject({ model: 'mötör "x"' });
});

test.each([NaN, Infinity, -Infinity])(
  "%d in a vector is a failure of ours, never an answer",
  (bad) => {
    for (const options of [floats, base64]) {
      const failure = failureOf(() => openaiEmbeddings.render(result([1, bad]), options));
      expect(failure.reason).toBe("internal");
    }
  },
);
