import { describe, expect, test } from "bun:test";
import { Failure } from "../worker/failure.ts";
import { parseItems } from "./input.ts";

const VOCAB = 1000;

function parse(value: unknown) {
  return parseItems(value, "input", VOCAB);
}

function failure(value: unknown): Failure {
  try {
    parse(value);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error(`accepted ${JSON.stringify(value)}`);
}

describe("accepted shapes", () => {
  const text = (value: string) => ({ text: value });
  const ids = (...values: number[]) => ({ ids: Int32Array.from(values) });
  test.each([
    ["a string", "hello", [text("hello")], false],
    ["white space only", " \n\t", [text(" \n\t")], false],
    ["a list of strings", ["a", "b"], [text("a"), text("b")], true],
    ["token ids", [101, 999, 0], [ids(101, 999, 0)], false],
    ["lists of token ids", [[1, 2], [3]], [ids(1, 2), ids(3)], true],
    ["typed parts, each an item", [{ type: "text", text: "a" }, "b"], [text("a"), text("b")], true],
    ["one item of one part", { content: [{ type: "text", text: "a" }] }, [text("a")], false],
    ["such an item in a list", ["x", { content: ["a"] }], [text("x"), text("a")], true],
  ])("%s", (_, value, items, isList) => {
    expect(parse(value)).toEqual({ items, field: { name: "input", isList } });
  });

  test("half a surrogate pair becomes U+FFFD, whole pairs and joiners stay", () => {
    expect(parse(["x\ud83d", "\ude00y", "ok 😀", "👨‍👩‍👧"]).items).toEqual([
      text("x\ufffd"),
      text("\ufffdy"),
      text("ok 😀"),
      text("👨‍👩‍👧"),
    ]);
  });
});

describe("refused shapes name the place", () => {
  const image = { type: "image_url", image_url: { url: "http://nowhere.invalid/x.png" } };
  test.each([
    ["absent", undefined, "input", "missing"],
    ["null", null, "input", "missing"],
    ["empty string", "", "input", "empty"],
    ["empty list", [], "input", "empty"],
    ["empty string in a list", ["ok", ""], "input[1]", "empty"],
    ["null in a list", ["ok", null], "input[1]", "does not fit"],
    ["strings, then ids", ["a", [1]], "input[1]", "does not fit"],
    ["strings, then a number", ["a", 1], "input[1]", "does not fit"],
    ["ids, then a string", [1, "a"], "input[1]", "token id"],
    ["ids, then a list", [1, [2]], "input[1]", "token id"],
    ["id lists, then a string", [[1], "a"], "input[1]", "list of token ids"],
    ["an empty id list", [[1], []], "input[1]", "empty"],
    ["three levels", [[[1]]], "input[0][0]", "token id"],
    ["a fraction as id", [1.5], "input[0]", "token id"],
    ["a negative id", [[3], [4, -1]], "input[1][1]", "token id"],
    ["an id beyond the vocabulary", [5, 1000], "input[1]", "check_embedding_ctx_length=False"],
    ["a number", 5, "input", "does not fit"],
    ["a boolean", true, "input", "does not fit"],
    ["an empty object", {}, "input", "type"],
    ["an unknown part", [{ type: "audio" }], "input[0]", "type"],
    ["a part without text", [{ type: "text" }], "input[0]", "text"],
    ["a part with empty text", [{ type: "text", text: "" }], "input[0]", "empty"],
    ["an image", [image], "input[0]", "text-only"],
    ["an image beside a string", ["a", image], "input[1]", "text-only"],
    ["an image without its fields", [{ type: "image_url" }], "input[0]", "text-only"],
    ["an inline image", [{ type: "image", data: "AAAA" }], "input[0]", "text-only"],
    ["an image in one item", { content: ["a", image] }, "input.content[1]", "text-only"],
    ["several parts in one item", ["a", { content: ["a", "b"] }], "input[1]", "join"],
    ["no parts in one item", { content: [] }, "input", "content"],
    ["parts that are no list", { content: "a" }, "input", "content"],
    ["parts in parts", { content: [{ content: ["a"] }] }, "input", "text part"],
  ])("%s", (_, value, param, message) => {
    const { reason, param: at, message: text } = failure(value);
    expect({ reason, at }).toEqual({ reason: "invalid", at: param });
    expect(text).toContain(message);
  });
});

test("nothing offers images to a model that reads text only", () => {
  for (const value of [undefined, 5, {}, [{ type: "audio" }], { content: "a" }, ["a", 1]]) {
    expect(failure(value).message).not.toMatch(/image/i);
  }
});

test("half a million token ids pass", () => {
  const list = Array.from({ length: 524_288 }, (_, i) => i % VOCAB);
  const [item] = parse(list).items;
  expect(item && "ids" in item && item.ids.length).toBe(524_288);
});

test("nesting of any depth is refused, not followed", () => {
  const deep: unknown = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  expect(failure(deep).reason).toBe("invalid");
});
