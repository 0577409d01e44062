import { expect, test } from "bun:test";
import { CONTEXT, failureOf, jsonOf } from "../testing/context.ts";
import { llamaDetokenize, llamaTokenize } from "./tokenize.ts";

const options = { kind: "tokens" } as const;

test("tokenize adds no specials and no pieces unless asked", () => {
  expect(llamaTokenize.parse({ content: "a b" }, CONTEXT).job).toEqual({
    kind: "tokenize",
    text: "a b",
    addSpecial: false,
    withPieces: false,
  });
  const asked = { content: "", add_special: true, with_pieces: true };
  expect(llamaTokenize.parse(asked, CONTEXT).job).toEqual({
    kind: "tokenize",
    text: "",
    addSpecial: true,
    withPieces: true,
  });
});

test("tokens are ids, or ids with their pieces", () => {
  const ids = Int32Array.of(5, 7);
  expect(jsonOf(llamaTokenize.render({ kind: "tokenize", ids }, options))).toEqual({
    tokens: [5, 7],
  });
  const pieces = ["ä", '"'];
  expect(jsonOf(llamaTokenize.render({ kind: "tokenize", ids, pieces }, options))).toEqual({
    tokens: [
      { id: 5, piece: "ä" },
      { id: 7, piece: '"' },
    ],
  });
});

test("detokenize takes ids of the vocabulary and answers content", () => {
  const { job } = llamaDetokenize.parse({ tokens: [1, 999] }, CONTEXT);
  expect(job).toEqual({ kind: "detokenize", ids: Int32Array.of(1, 999) });
  expect(jsonOf(llamaDetokenize.render({ kind: "detokenize", text: "grün" }, options))).toEqual({
    content: "grün",
  });
});

test.each([
  [llamaTokenize, {}, "content"],
  [llamaTokenize, { content: 5 }, "content"],
  [llamaTokenize, { content: "a", with_pieces: 1 }, "with_pieces"],
  [llamaTokenize, { content: "a".repeat(2 ** 20 + 1) }, "content"],
  [llamaDetokenize, {}, "tokens"],
  [llamaDetokenize, { tokens: "5" }, "tokens"],
  [llamaDetokenize, { tokens: [1, 1000] }, "tokens[1]"],
  [llamaDetokenize, { tokens: ["a"] }, "tokens[0]"],
])("wrong fields are refused by name", (dialect, body, param) => {
  expect(failureOf(() => dialect.parse(body, CONTEXT))).toMatchObject({ reason: "invalid", param });
});
