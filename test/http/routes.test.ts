import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { expected, fixture, referenceCase } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import {
  embed,
  embedNative,
  expectAlive,
  expectVector,
  expectVectors,
  okJson,
  refusalOf,
  unit,
} from "./answers.ts";

setDefaultTimeout(60_000);

const reference = expected("bert-mean");
const medium = referenceCase("bert-mean", "medium");
const short = referenceCase("bert-mean", "short");
const POSTS = [
  "/v1/embeddings",
  "/embedding",
  "/embeddings",
  "/embed",
  "/tokenize",
  "/detokenize",
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/rerank",
  "/v1/reranking",
  "/rerank",
  "/reranking",
  "/v2/rerank",
];
const GETS = ["/", "/health", "/v1/health", "/v1/models", "/models", "/props", "/info"];

let server: Server;
beforeAll(async () => {
  server = await startServer(["-m", fixture("bert-mean"), "--alias", "mini,demo/mini"]);
});
afterAll(() => server?.stop());

describe("what is served", () => {
  const Entry = z.object({
    id: z.string(),
    kind: z.literal("embedding"),
    object: z.literal("model"),
    owned_by: z.string(),
    created: z.int(),
  });

  test.each(["/v1/models", "/models"])("%s lists the models that answer", async (path) => {
    const List = z.object({ object: z.literal("list"), data: z.array(Entry) });
    const { data } = List.parse(await okJson(await server.get(path)));
    expect(data.map((model) => model.id)).toEqual(["bert-mean"]);
    const nowSeconds = Date.now() / 1000;
    expect(data[0]?.created).toBeWithin(nowSeconds - 600, nowSeconds + 1);
  });

  test("the answer's model is the listed id, and every alias is accepted", async () => {
    for (const model of [undefined, "bert-mean", "mini", "demo/mini", fixture("bert-mean")]) {
      expect((await embed(server, { input: "vector", model })).model).toBe("bert-mean");
    }
  });

  test("/v1/models/{id} tells about one, an unknown one is a 404", async () => {
    expect(Entry.parse(await okJson(await server.get("/v1/models/bert-mean"))).id).toBe(
      "bert-mean",
    );
    for (const id of ["gpt-4o", "%zz", "bert-mean/", "..%2f..%2fetc"]) {
      const refusal = await refusalOf(await server.get(`/v1/models/${id}`));
      expect(refusal).toMatchObject({ status: 404, type: "not_found_error" });
    }
  });

  test("/props tells what the model is", async () => {
    const Props = z.object({ models: z.array(z.looseObject({ limits: z.looseObject({}) })) });
    const { models } = Props.parse(await okJson(await server.get("/props")));
    expect(models).toHaveLength(1);
    expect(models[0]).toMatchObject({
      id: "bert-mean",
      kind: "embedding",
      family: "bert",
      dim: reference.dim,
      max_length: reference.max_length,
      pooling: "mean",
      normalization: "l2",
      multi_vector: false,
    });
  });

  test("/info tells TEI clients what they look for", async () => {
    expect(await okJson(await server.get("/info"))).toMatchObject({
      model_id: "bert-mean",
      model_type: { embedding: { pooling: "mean" } },
      max_input_length: reference.max_length,
      max_client_batch_size: expect.any(Number),
      version: expect.any(String),
    });
  });

  test.each(["/", "/health", "/v1/health"])("%s is alive", async (path) => {
    expect(await okJson(await server.get(path))).toMatchObject({ status: "ok" });
  });
});

describe("the TEI route", () => {
  const Vectors = z.array(z.array(z.number()));
  const post = async (body: unknown) =>
    Vectors.parse(await okJson(await server.post("/embed", body)));

  test("gives one bare list per input, also for a single string", async () => {
    expectVectors(await post({ inputs: medium.input }), [medium.embedding]);
    const inputs = [medium.input, short.input];
    expectVectors(await post({ inputs }), [medium.embedding, short.embedding]);
    const fields = { truncate: null, normalize: null, prompt_name: null, dimensions: null };
    expectVectors(await post({ inputs, ...fields, foo: 1 }), [medium.embedding, short.embedding]);
  });

  test("normalize and dimensions", async () => {
    const raw = medium.unnormalized ?? [];
    expectVectors(await post({ inputs: medium.input, normalize: false }), [raw]);
    expectVectors(await post({ inputs: medium.input, normalize: true }), [medium.embedding]);
    const cut = { inputs: medium.input, dimensions: 8 };
    expectVectors(await post(cut), [unit(raw.slice(0, 8))]);
    expectVectors(await post({ ...cut, normalize: false }), [raw.slice(0, 8)]);
  });

  test("inputs, not input, is its field", async () => {
    const refusal = await refusalOf(await server.post("/embed", { input: "vector" }));
    expect(refusal).toMatchObject({ status: 400, param: "inputs" });
  });
});

describe("the native routes", () => {
  test.each(["/embedding", "/embeddings"])(
    "%s is a bare list, not the OpenAI envelope",
    async (path) => {
      const inputs = [medium.input, short.input];
      const vectors = [medium.embedding, short.embedding];
      expectVectors(await embedNative(server, { input: inputs }, path), vectors);
      expectVectors(await embedNative(server, { content: medium.input }, path), [medium.embedding]);
    },
  );
});

describe("paths and verbs", () => {
  const unknown = ["/nope", "/v1", "/v1/", "/v1/models/", "/V1/embeddings", "/health/x"];
  const slashed = [...POSTS, ...GETS].filter((path) => path !== "/").map((path) => `${path}/`);

  test.each([...unknown, ...slashed])("%s is a 404, never a redirect", async (path) => {
    for (const method of ["GET", "POST", "DELETE"]) {
      const body = method === "POST" ? { body: '{"input":"vector"}' } : {};
      const response = await server.fetch(path, { method, redirect: "manual", ...body });
      expect(await refusalOf(response)).toMatchObject({ status: 404, type: "not_found_error" });
    }
  });

  test.each(POSTS)("%s takes POST alone", async (path) => {
    for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
      const refusal = await refusalOf(await server.fetch(path, { method }));
      expect(refusal).toMatchObject({ status: 405, type: "invalid_request_error" });
      expect(refusal.headers.get("allow")).toContain("POST");
    }
    expect((await server.fetch(path, { method: "HEAD" })).status).toBe(405);
  });

  test.each([...GETS, "/v1/models/bert-mean"])("%s takes GET and HEAD alone", async (path) => {
    for (const method of ["POST", "PUT", "DELETE"]) {
      const refusal = await refusalOf(await server.fetch(path, { method }));
      expect(refusal).toMatchObject({ status: 405, type: "invalid_request_error" });
      expect(refusal.headers.get("allow")).toContain("GET");
    }
    const head = await server.fetch(path, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    expect(head.headers.get("content-type")).toStartWith("application/json");
  });

  test("a query string changes nothing", async () => {
    expect((await server.get("/health?x=1")).status).toBe(200);
    const response = await server.post("/v1/embeddings?api-version=1", { input: medium.input });
    expect(response.status).toBe(200);
  });

  test.each([
    ["/v1/chat/completions", "-m"],
    ["/v1/completions", "-m"],
    ["/v1/rerank", "--reranker-model"],
    ["/v1/reranking", "--reranker-model"],
    ["/rerank", "--reranker-model"],
    ["/reranking", "--reranker-model"],
    ["/v2/rerank", "--reranker-model"],
  ])("%s is a 501 that names %s", async (path, flag) => {
    const body = { model: "x", query: "q", documents: ["d"], messages: [], prompt: "p" };
    const refusal = await refusalOf(await server.post(path, body));
    expect(refusal).toMatchObject({ status: 501, type: "not_implemented" });
    expect(refusal.message).toContain(flag);
  });

  test("/metrics is a 501 that names its flag until that is given", async () => {
    const refusal = await refusalOf(await server.get("/metrics"));
    expect(refusal).toMatchObject({ status: 501, type: "not_implemented" });
    expect(refusal.message).toContain("--metrics");
    await using measured = await startServer(["-m", fixture("bert-mean"), "--metrics"]);
    await expectAlive(measured);
    const response = await measured.get("/metrics");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toStartWith("text/plain");
    expect(await response.text()).toContain("# TYPE ");
  });
});

describe("every answer", () => {
  test("carries a request id of its own, or the client's", async () => {
    const responses = [
      await server.get("/health"),
      await server.get("/nope"),
      await server.post("/v1/embeddings", { input: "vector" }),
      await server.post("/v1/embeddings", "{"),
      await server.get("/embed"),
      await server.post("/v1/rerank", {}),
      await server.fetch("/v1/embeddings", { method: "OPTIONS" }),
    ];
    const ids = responses.map((response) => response.headers.get("x-request-id") ?? "");
    expect(new Set(ids).size).toBe(responses.length);
    expect(Math.min(...ids.map((id) => id.length))).toBeGreaterThan(8);
    const named = await server.get("/health", { "x-request-id": "my-own-id.1" });
    expect(named.headers.get("x-request-id")).toBe("my-own-id.1");
  });

  test("equal requests get equal answers", async () => {
    const body = { input: [medium.input, short.input] };
    const first = await embed(server, body);
    expect(await embed(server, body)).toEqual(first);
    expectVector(first.vectors[1] ?? [], short.embedding);
  });
});
