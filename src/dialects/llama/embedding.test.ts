import { expect, test } from "bun:test";
import { CONTEXT, failureOf, jsonOf, result } from "../testing/context.ts";
import { llamaEmbedding } from "./embedding.ts";

test("content is read when input is absent, and input wins", () => {
  const items = (body: object) => llamaEmbedding.parse(body, CONTEXT).job;
  expect(items({ content: "old" })).toMatchObject({
    items: [{ text: "old" }],
    field: { name: "content" },
  });
  expect(items({ content: "old", input: null })).toMatchObject({ items: [{ text: "old" }] });
  expect(items({ content: "old", input: "new" })).toMatchObject({
    items: [{ text: "new" }],
    field: { name: "input" },
  });
});

test("errors name the field that was read", () => {
  const param = (body: object) => failureOf(() => llamaEmbedding.parse(body, CONTEXT)).param;
  expect(param({ content: ["a", ""] })).toBe("content[1]");
  expect(param({ content: "" })).toBe("content");
  expect(param({})).toBe("input");
});

test("the answer is a bare array of entries that hold rows", () => {
  const options = { kind: "vectors", model: "tiny", encoding: "float" } as const;
  expect(jsonOf(llamaEmbedding.render(result([1, 2, 3, 4]), options))).toEqual([
    { index: 0, embedding: [[1, 2]] },
    { index: 1, embedding: [[3, 4]] },
  ]);
  expect(jsonOf(llamaEmbedding.render(result([1, 2, 3, 4, 5, 6], [1, 2]), options))).toEqual([
    { index: 0, embedding: [[1, 2]] },
    {
      index: 1,
      embedding: [
        [3, 4],
        [5, 6],
      ],
    },
  ]);
});

test("base64 is one string per entry, with shape only for multi-vector", () => {
  const options = { kind: "vectors", model: "tiny", encoding: "base64" } as const;
  const embedding = Buffer.from(Float32Array.of(1, 2).buffer).toString("base64");
  expect(jsonOf(llamaEmbedding.render(result([1, 2]), options))).toEqual([{ index: 0, embedding }]);
  expect(jsonOf(llamaEmbedding.render(result([1, 2], [1]), options))).toEqual([
    { index: 0, embedding, shape: [1, 2] },
  ]);
});
