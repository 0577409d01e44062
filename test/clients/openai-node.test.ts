import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { AuthenticationError, BadRequestError, NotFoundError } from "openai";
import { expectVector, expectVectors, unit } from "../http/answers.ts";
import { fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { many, MODEL, one, tokenIds } from "./reference.ts";

const KEY = "sk-test";

let server: Server;
let client: OpenAI;
const sentBodies: string[] = [];
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture(MODEL), "--api-key", KEY]);
  client = connected(KEY);
});
afterAll(() => server?.stop());

function connected(apiKey: string): OpenAI {
  return new OpenAI({
    baseURL: `${server.url}/v1`,
    apiKey,
    maxRetries: 0,
    fetch: (url, init) => {
      sentBodies.push(String(init?.body));
      return fetch(url, init);
    },
  });
}

/** The exception of a call that must not succeed. */
async function exceptionOf(call: Promise<unknown>): Promise<unknown> {
  const answer = await call.catch((error: unknown) => ({ error }));
  if (typeof answer === "object" && answer !== null && "error" in answer) return answer.error;
  throw new Error(`answered where an exception was due: ${JSON.stringify(answer)}`);
}

describe("openai for Node", () => {
  test("its default, base64, gives the vector of one text", async () => {
    const { data, model, object, usage } = await client.embeddings.create({
      model: MODEL,
      input: String(one.input),
    });
    expect(JSON.parse(sentBodies.at(-1) ?? "")).toMatchObject({ encoding_format: "base64" });
    expect(data).toMatchObject([{ object: "embedding", index: 0 }]);
    expectVector(data[0]?.embedding ?? [], one.embedding);
    expect({ model, object, usage }).toEqual({
      model: MODEL,
      object: "list",
      usage: { prompt_tokens: one.prompt_tokens, total_tokens: one.prompt_tokens },
    });
  });

  test.each(["float", "base64", undefined] as const)("many texts in order: %p", async (format) => {
    const { data, usage } = await client.embeddings.create({
      model: MODEL,
      input: many.texts,
      ...(format === undefined ? {} : { encoding_format: format }),
    });
    expect(data.map((entry) => entry.index)).toEqual(many.texts.map((_, i) => i));
    expectVectors(
      data.map(({ embedding }) => floatsOf(embedding)),
      many.vectors,
    );
    expect(usage.prompt_tokens).toBe(many.tokens);
  });

  test("token ids, one list or several", async () => {
    const input = [...tokenIds.token_ids];
    const alone = await client.embeddings.create({ model: MODEL, input });
    expectVectors(
      alone.data.map((entry) => entry.embedding),
      [tokenIds.embedding],
    );
    const listed = await client.embeddings.create({ model: MODEL, input: [input, one.token_ids] });
    expectVectors(
      listed.data.map((entry) => entry.embedding),
      [tokenIds.embedding, one.embedding],
    );
  });

  test("dimensions cut the vector, which stays of length 1", async () => {
    const { data } = await client.embeddings.create({
      model: MODEL,
      input: String(one.input),
      dimensions: 16,
    });
    expectVector(data[0]?.embedding ?? [], unit(one.embedding.slice(0, 16)));
  });

  test("the models that are listed can be retrieved and used", async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toEqual([MODEL]);
    expect(await client.models.retrieve(MODEL)).toMatchObject({ id: MODEL, object: "model" });
  });
});

describe("the exceptions of openai for Node", () => {
  test("a model that is not served: BadRequestError, code model_not_found", async () => {
    const call = client.embeddings.create({ model: "text-embedding-3-small", input: "a" });
    const error = await exceptionOf(call);
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({
      status: 400,
      code: "model_not_found",
      param: "model",
      type: "invalid_request_error",
      message: expect.stringContaining(MODEL),
    });
  });

  test("an unknown model in the list of models: NotFoundError", async () => {
    const error = await exceptionOf(client.models.retrieve("nope"));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ status: 404, message: expect.stringContaining("nope") });
  });

  test("a wrong key: AuthenticationError", async () => {
    const call = connected("sk-wrong").embeddings.create({ model: MODEL, input: "a" });
    const error = await exceptionOf(call);
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({
      status: 401,
      type: "authentication_error",
      message: expect.stringMatching(/key/i),
    });
  });

  test.each([
    ["an empty text", { input: ["fine", ""] }, "input[1]"],
    ["too many dimensions", { input: "a", dimensions: 65 }, "dimensions"],
  ])("%s: BadRequestError that names the field", async (_, fields, param) => {
    const error = await exceptionOf(client.embeddings.create({ model: MODEL, ...fields }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ param, message: expect.stringContaining(param) });
  });
});

/** With base64 asked for by name the client hands the text through, whatever its types say. */
function floatsOf(embedding: number[] | string): number[] {
  if (typeof embedding !== "string") return embedding;
  const bytes = Buffer.from(embedding, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}
