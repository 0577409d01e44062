import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { fixture } from "../checkpoints.ts";
import { expectVectors, littleEndianFloats, unit } from "../http/answers.ts";
import { type Server, startServer } from "../server.ts";
import { Failure, PYTHON_TIMEOUT_MS, runPython } from "./python.ts";
import { many, MODEL, one, tokenIds } from "./reference.ts";

const KEY = "sk-test";
const Vectors = z.array(z.array(z.number()));
const Answers = z.strictObject({
  one: z.strictObject({ vectors: Vectors, model: z.string(), tokens: z.array(z.number()) }),
  base64: Vectors,
  base64_without_numpy: Vectors,
  float: Vectors,
  raw: z.string(),
  ids: Vectors,
  dimensions: Vectors,
  models: z.array(z.string()),
  wrong_model: Failure,
  unknown_model: Failure,
  wrong_key: Failure,
  empty_text: Failure,
});

let server: Server;
let answers: z.infer<typeof Answers>;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture(MODEL), "--api-key", KEY]);
  const asked = {
    url: server.url,
    key: KEY,
    model: MODEL,
    one: one.input,
    many: many.texts,
    ids: [tokenIds.token_ids, one.token_ids],
  };
  answers = Answers.parse(await runPython("openai_client.py", asked));
}, PYTHON_TIMEOUT_MS);
afterAll(() => server?.stop());

describe("openai for Python", () => {
  test("one text, by the default of the client", () => {
    expectVectors(answers.one.vectors, [one.embedding]);
    expect(answers.one.model).toBe(MODEL);
    expect(answers.one.tokens).toEqual([one.prompt_tokens, one.prompt_tokens]);
  });

  test("many texts as base64 (its default), decoded with numpy and without", () => {
    expectVectors(answers.base64, many.vectors);
    expect(answers.base64_without_numpy).toEqual(answers.base64);
  });

  test("many texts as floats are the very f32 of the base64", () => {
    expectVectors(answers.float, many.vectors);
    expect(answers.float.map((vector) => vector.map(Math.fround))).toEqual(answers.base64);
  });

  test("base64 that is asked for by name comes as text", () => {
    expectVectors([littleEndianFloats(answers.raw)], [one.embedding]);
  });

  test("lists of token ids", () => {
    expectVectors(answers.ids, [tokenIds.embedding, one.embedding]);
  });

  test("dimensions cut the vector, which stays of length 1", () => {
    expectVectors(answers.dimensions, [unit(one.embedding.slice(0, 16))]);
  });

  test("the models are listed", () => {
    expect(answers.models).toEqual([MODEL]);
  });
});

describe("the exceptions of openai for Python", () => {
  test("a model that is not served: BadRequestError, code model_not_found", () => {
    expect(answers.wrong_model).toEqual({
      kind: "BadRequestError",
      status: 400,
      code: "model_not_found",
      param: "model",
      message: expect.stringContaining(MODEL),
    });
  });

  test("an unknown model in the list of models: NotFoundError", () => {
    expect(answers.unknown_model).toMatchObject({ kind: "NotFoundError", status: 404 });
    expect(answers.unknown_model.message).toContain("nope");
  });

  test("a wrong key: AuthenticationError", () => {
    expect(answers.wrong_key).toMatchObject({ kind: "AuthenticationError", status: 401 });
    expect(answers.wrong_key.message).toMatch(/API key/i);
  });

  test("an empty text: BadRequestError that names the item", () => {
    expect(answers.empty_text).toMatchObject({
      kind: "BadRequestError",
      status: 400,
      param: "input[1]",
      message: expect.stringContaining("input[1]"),
    });
  });
});
