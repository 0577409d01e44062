import { describe, expect, test } from "bun:test";
import { openaiEmbeddings } from "./openai/embeddings.ts";
import { CONTEXT, failureOf } from "./testing/context.ts";

function parse(fields: object) {
  return openaiEmbeddings.parse({ input: "hello", ...fields }, CONTEXT);
}

test("null and unknown fields count as absent", () => {
  const nulls = {
    model: null,
    encoding_format: null,
    dimensions: null,
    user: null,
    embd_normalize: null,
    truncate: null,
    instruction: null,
    prompt_name: null,
    input_type: null,
    foo: 1,
  };
  expect(parse(nulls)).toEqual(parse({}));
  expect(parse({}).job).toEqual({
    kind: "embed",
    items: [{ text: "hello" }],
    field: { name: "input", isList: false },
    truncate: true,
  });
});

test.each([
  ["dimensions", 1, { dimensions: 1 }],
  ["dimensions", 8, { dimensions: 8 }],
  ["embd_normalize", -1, { normalize: -1 }],
  ["embd_normalize", 0, { normalize: 0 }],
  ["embd_normalize", 7, { normalize: 7 }],
  ["truncate", false, { truncate: false }],
  ["instruction", "Find it", { instruction: "Find it" }],
  ["instruction", "  \n", {}],
  ["prompt_name", "classify", { promptName: "classify" }],
  ["prompt_name", "document", { promptName: "document" }],
  ["input_type", "query", { promptName: "query" }],
  ["input_type", "search_query", { promptName: "query" }],
  ["input_type", "search_document", { promptName: "document" }],
])("%s %j is understood", (field, value, expected) => {
  expect(parse({ [field]: value }).job).toMatchObject(expected);
});

test("a prompt of the checkpoint wins over the synonym of that name", () => {
  expect(parse({ input_type: "passage" }).job.promptName).toBe("passage");
});

test("prompt_name wins over input_type", () => {
  expect(parse({ prompt_name: "classify", input_type: "query" }).job.promptName).toBe("classify");
});

describe("wrong values are refused by the name of their field", () => {
  test.each([
    ["dimensions", 0],
    ["dimensions", 9],
    ["dimensions", -1],
    ["dimensions", 1.5],
    ["dimensions", "8"],
    ["embd_normalize", -2],
    ["embd_normalize", 1.5],
    ["embd_normalize", "2"],
    ["encoding_format", "Base64"],
    ["encoding_format", ""],
    ["encoding_format", "int8"],
    ["truncate", "yes"],
    ["instruction", 5],
    ["prompt_name", "nope"],
    ["prompt_name", ""],
    ["input_type", "clustering"],
    ["model", 5],
  ])("%s %j", (field, value) => {
    const failure = failureOf(() => parse({ [field]: value }));
    expect(failure.reason).toBe("invalid");
    expect(failure.param).toBe(field);
    expect(failure.message).toContain(field);
  });
});

test("an unknown prompt name is answered with the known ones", () => {
  const { message } = failureOf(() => parse({ prompt_name: "nope" }));
  expect(message).toContain('"query", "classify", "passage", "document"');
});

test("the model may be named by its id or another of its names, by nothing else", () => {
  for (const model of ["tiny", "acme/tiny"]) {
    expect(parse({ model }).render).toMatchObject({ model: "tiny" });
  }
  for (const model of ["", "gpt-4o", "Tiny"]) {
    const failure = failureOf(() => parse({ model }));
    expect(failure).toMatchObject({ reason: "model_not_found", param: "model" });
    expect(failure.message).toContain('"tiny"');
  }
});

test.each([[[]], ["x"], [5], [null], [true]])("a body that is %j is refused", (body) => {
  expect(failureOf(() => openaiEmbeddings.parse(body, CONTEXT)).reason).toBe("invalid");
});
