import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { CheckpointCopy, fixture, referenceCase } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import {
  badRequest,
  embed,
  embedNative,
  embedOne,
  expectDifferent,
  expectVector,
  expectVectors,
} from "./answers.ts";

setDefaultTimeout(60_000);

const NAME = "bert-no-prompt-pooling";
const prompted = referenceCase(NAME, "prompted_query");
const plain = referenceCase(NAME, "prompted");
const text = prompted.input;

describe("prompts of the checkpoint", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer([
      ...["--embedding-model", fixture(NAME)],
      ...["--embedding-queue-depth", "64"],
    ]);
  });
  afterAll(() => server?.stop());

  test.each([{ prompt_name: "query" }, { input_type: "query" }, { input_type: "search_query" }])(
    "%j goes before the text, and its tokens count",
    async (field) => {
      const answer = await embed(server, { input: text, ...field });
      expectVectors(answer.vectors, [prompted.embedding]);
      expect(answer.tokens).toBe(prompted.prompt_tokens);
      expectVectors(await embedNative(server, { input: text, ...field }), [prompted.embedding]);
    },
  );

  test.each(["document", "passage", "search_document"])(
    "an empty prompt adds nothing: %s",
    async (name) => {
      expectVector(await embedOne(server, text, { prompt_name: name }), plain.embedding);
      expectVector(await embedOne(server, text, { input_type: name }), plain.embedding);
    },
  );

  test("no name and no default: no prompt", async () => {
    expectVector(await embedOne(server, text), plain.embedding);
  });

  test("prompt_name and input_type do not carry over, and token ids take no prompt", async () => {
    const both = await embed(server, { input: [text, text], prompt_name: "query" });
    expectVectors(both.vectors, [prompted.embedding, prompted.embedding]);
    expectVector(await embedOne(server, text), plain.embedding);
    const ids = plain.token_ids;
    expectVector(await embedOne(server, ids, { prompt_name: "query" }), plain.embedding);
  });

  test("requests with different prompts at once each get their own", async () => {
    const names = Array.from({ length: 20 }, (_, i) => (i % 2 ? "query" : "document"));
    const vectors = await Promise.all(
      names.map((prompt_name, i) => embedOne(server, text, { prompt_name, user: String(i) })),
    );
    vectors.forEach((vector, i) => expectVector(vector, (i % 2 ? prompted : plain).embedding));
  });

  test("the TEI route takes prompt_name", async () => {
    const response = await server.post("/embed", { inputs: text, prompt_name: "query" });
    const [vector] = JSON.parse(await response.text());
    expectVector(vector, prompted.embedding);
  });

  test.each(["prompt_name", "input_type"])("an unknown %s lists the known ones", async (field) => {
    const refusal = await badRequest(server, { input: text, [field]: "clustering" });
    expect(refusal.param).toBe(field);
    expect(refusal.message).toContain("clustering");
    expect(refusal.message).toContain("query");
    expect(refusal.message).toContain("document");
  });

  test("prompt and text together are cut to the limit by cutting the text", async () => {
    const long = `${text} `.repeat(40);
    const answer = await embed(server, { input: long, prompt_name: "query" });
    expect(answer).toMatchObject({ tokens: 96, truncated: "1" });
    expectDifferent(answer.vectors[0] ?? [], await embedOne(server, long));
  });
});

describe("a checkpoint's own names", () => {
  const prompts = { query: "query: ", passage: "passage: ", search_query: "search: " };
  const copy = () =>
    new CheckpointCopy("bert-mean").set("config_sentence_transformers.json", { prompts });

  test("beat the synonyms of the same name", async () => {
    await using server = await startServer(["--embedding-model", copy().directory]);
    for (const [prompt_name, prompt] of Object.entries(prompts)) {
      const written = await embedOne(server, `${prompt}vector`);
      expectVector(await embedOne(server, "vector", { prompt_name }), written);
      expectVector(await embedOne(server, "vector", { input_type: prompt_name }), written);
    }
    const { message } = await badRequest(server, { input: "vector", prompt_name: "nope" });
    for (const name of Object.keys(prompts)) expect(message).toContain(name);
  });

  test("the default prompt applies unless the request names one", async () => {
    const withDefault = copy().set("config_sentence_transformers.json", {
      default_prompt_name: "passage",
    });
    await using server = await startServer(["--embedding-model", withDefault.directory]);
    await using bare = await startServer(["--embedding-model", fixture("bert-mean")]);
    expectVector(await embedOne(server, "vector"), await embedOne(bare, "passage: vector"));
    const query = await embedOne(server, "vector", { prompt_name: "query" });
    expectVector(query, await embedOne(bare, "query: vector"));
    const document = await embedOne(server, "vector", { prompt_name: "document" });
    expectVector(document, await embedOne(bare, "vector"));
    expectVector(await embedOne(server, [2, 207, 3]), await embedOne(bare, [2, 207, 3]));
  });

  test("without prompts query and document are valid and add nothing", async () => {
    await using server = await startServer(["--embedding-model", fixture("bert-mean")]);
    const vector = await embedOne(server, "vector");
    for (const name of ["query", "document", "search_query", "search_document", "passage"]) {
      expectVector(await embedOne(server, "vector", { prompt_name: name }), vector);
    }
    await badRequest(server, { input: "vector", input_type: "classification" });
  });
});
