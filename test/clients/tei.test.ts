import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { expected, fixture, referenceCase } from "../checkpoints.ts";
import { expectVector, expectVectors, refusalOf } from "../http/answers.ts";
import { type Server, startServer } from "../server.ts";
import { Failure, PYTHON_TIMEOUT_MS, runPython } from "./python.ts";
import { MODEL, many, one } from "./reference.ts";

const KEY = "secret";
const long = referenceCase(MODEL, "long");

const Vector = z.array(z.number());
const Vectors = z.array(Vector);
const Answers = z.strictObject({
  llama_index: z.strictObject({
    query: Vector,
    text: Vector,
    texts: Vectors,
    by_token_function: Vector,
    instructed_query: Vector,
    instructed_text: Vector,
    too_long: Failure,
    wrong_token: Failure,
  }),
  hub: z.strictObject({
    one: Vectors,
    many: Vectors,
    unnormalized: Vectors,
    empty_text: Failure,
    wrong_prompt: Failure,
    wrong_token: Failure,
    info: z.unknown(),
  }),
});

/** LlamaIndex strips its texts, and nothing is left of a blank one. */
const visible = many.texts.flatMap((text, i) => (text.trim() === "" ? [] : [i]));

let server: Server;
let answers: z.infer<typeof Answers>;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture(MODEL), "--api-key", KEY]);
  const asked = {
    url: server.url,
    key: KEY,
    model: MODEL,
    one: one.input,
    many: visible.map((i) => many.texts[i]),
    // The client joins instruction and text with a blank: together a text of the reference.
    pair: { before: "How do I", after: "boil an egg?" },
    long: long.input,
  };
  answers = Answers.parse(await runPython("tei_clients.py", asked));
}, PYTHON_TIMEOUT_MS);
afterAll(() => server?.stop());

const visibleVectors = () => visible.map((i) => many.vectors[i] ?? []);

describe("LlamaIndex's TextEmbeddingsInference", () => {
  test("a query and a text, with a token given or computed", () => {
    expectVector(answers.llama_index.query, one.embedding);
    expectVector(answers.llama_index.text, one.embedding);
    expectVector(answers.llama_index.by_token_function, one.embedding);
  });

  test("many texts in requests of four", () => {
    expectVectors(answers.llama_index.texts, visibleVectors());
  });

  test("its instructions are part of the text", () => {
    expect(one.input).toBe("How do I boil an egg?");
    expectVector(answers.llama_index.instructed_query, one.embedding);
    expectVector(answers.llama_index.instructed_text, one.embedding);
  });

  // This client never looks at the status: it stumbles over the missing first vector.
  test("a refusal ends in an exception, never in a vector", async () => {
    expect(answers.llama_index.wrong_token.kind).toBe("KeyError");
    expect(answers.llama_index.too_long.kind).toBe("KeyError");
    const body = { inputs: [long.input], truncate: false };
    const direct = await server.post("/embed", body, { authorization: `Bearer ${KEY}` });
    expect((await refusalOf(direct)).message).toMatch(/too large.*exceeds maximum context length/);
  });
});

describe("huggingface_hub's InferenceClient", () => {
  test("one text and many texts", () => {
    expectVectors(answers.hub.one, [one.embedding]);
    expectVectors(answers.hub.many, visibleVectors());
  });

  test("normalize=False gives the vector as it was pooled", () => {
    expectVectors(answers.hub.unnormalized, [one.unnormalized ?? []]);
  });

  test("a refusal is its BadRequestError with our message", () => {
    const { empty_text, wrong_prompt } = answers.hub;
    expect([empty_text.kind, wrong_prompt.kind]).toEqual(["BadRequestError", "BadRequestError"]);
    expect(empty_text.message).toContain("inputs[1] is an empty string");
    expect(wrong_prompt.message).toContain('prompt_name "nope" is unknown');
  });

  test("a wrong token is its HTTP error with our message", () => {
    expect(answers.hub.wrong_token.kind).toBe("HfHubHTTPError");
    expect(answers.hub.wrong_token.message).toMatch(/401.*API key/s);
  });

  test("get_endpoint_info tells the model and its limits", () => {
    expect(answers.hub.info).toMatchObject({
      model_id: MODEL,
      model_dtype: "F32",
      model_type: { embedding: { pooling: "mean" } },
      max_input_length: expected(MODEL).max_length,
      max_client_batch_size: expect.any(Number),
      auto_truncate: true,
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    });
  });
});
