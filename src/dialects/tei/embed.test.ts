import { expect, test } from "bun:test";
import { CONTEXT, failureOf, jsonOf, result } from "../testing/context.ts";
import { teiEmbed } from "./embed.ts";
import { teiInfo } from "./info.ts";

const options = { kind: "vectors", model: "tiny", encoding: "float" } as const;

test.each([
  [{ inputs: "a" }, { normalize: undefined, truncate: true }],
  [
    { inputs: "a", normalize: null, truncate: null },
    { normalize: undefined, truncate: true },
  ],
  [
    { inputs: "a", normalize: true, truncate: false },
    { normalize: 2, truncate: false },
  ],
  [{ inputs: ["a"], normalize: false }, { normalize: -1 }],
  [
    { inputs: "a", prompt_name: "classify", dimensions: 4 },
    { promptName: "classify", dimensions: 4 },
  ],
])("%j", (body, expected) => {
  expect(teiEmbed.parse(body, CONTEXT).job).toMatchObject(expected);
});

test("errors name inputs", () => {
  expect(failureOf(() => teiEmbed.parse({ inputs: ["a", ""] }, CONTEXT)).param).toBe("inputs[1]");
  expect(failureOf(() => teiEmbed.parse({ input: "a" }, CONTEXT)).param).toBe("inputs");
});

test("the answer is a bare array of vectors; of rows per input for multi-vector models", () => {
  expect(jsonOf(teiEmbed.render(result([1, 2, 3, 4]), options))).toEqual([
    [1, 2],
    [3, 4],
  ]);
  expect(jsonOf(teiEmbed.render(result([1, 2, 3, 4, 5, 6], [2, 1]), options))).toEqual([
    [
      [1, 2],
      [3, 4],
    ],
    [[5, 6]],
  ]);
});

test("info has the fields that clients read", () => {
  expect(teiInfo(CONTEXT.model, { truncate: true, maxItems: 64, version: "1.2.3" })).toMatchObject({
    model_id: "tiny",
    model_type: { embedding: { pooling: "mean" } },
    max_input_length: 16,
    max_client_batch_size: 64,
    auto_truncate: true,
    version: "1.2.3",
  });
});
