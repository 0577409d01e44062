import { expect, test } from "bun:test";
import { errorOf } from "./testing/answers.ts";
import { TestServer } from "./testing/test-server.ts";

const KNOWN_GET = ["/", "/health", "/v1/health", "/v1/models", "/models", "/props", "/info"];
const KNOWN_POST = [
  "/v1/embeddings",
  "/embedding",
  "/embeddings",
  "/embed",
  "/tokenize",
  "/detokenize",
  "/v1/rerank",
  "/v1/reranking",
  "/rerank",
  "/reranking",
  "/v2/rerank",
];

test("HEAD answers as GET does, without a body", async () => {
  await using server = await TestServer.start();
  for (const path of KNOWN_GET) {
    const get = await server.request(path);
    const head = await server.request(path, { method: "HEAD" });
    expect(get.status).toBe(200);
    expect(head.status).toBe(200);
    expect(head.headers.get("content-type")).toBe("application/json");
    expect(await head.text()).toBe("");
  }
});

test("a wrong verb is 405 JSON that lists the right ones", async () => {
  await using server = await TestServer.start();
  const cases = [
    ...KNOWN_POST.map((path) => ["GET", path, "POST, OPTIONS"]),
    ...KNOWN_GET.map((path) => ["POST", path, "GET, HEAD, OPTIONS"]),
    ["DELETE", "/v1/models/tiny", "GET, HEAD, OPTIONS"],
    ["PUT", "/v1/embeddings", "POST, OPTIONS"],
  ] as const;
  for (const [method, path, allow] of cases) {
    const response = await server.request(path!, { method: method! });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe(allow!);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
  }
});

test("unknown paths are 404 JSON, never a redirect", async () => {
  await using server = await TestServer.start();
  for (const path of ["/nope", "/v1/embeddings/", "/health/", "/V1/embeddings", "/v1/models/"]) {
    for (const method of ["GET", "POST"]) {
      const response = await server.request(path, { method });
      expect(response.status).toBe(404);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toMatchObject({
        error: { type: "not_found_error", code: null, param: null, message: expect.any(String) },
      });
    }
  }
});

test("a query string is no part of the path", async () => {
  await using server = await TestServer.start();
  expect((await server.request("/health?x=/nope")).status).toBe(200);
});

test("chat routes say that this version has no chat models, and what -m is for", async () => {
  await using server = await TestServer.start();
  for (const path of ["/v1/chat/completions", "/v1/completions"]) {
    const response = await server.post(path, {});
    expect(response.status).toBe(501);
    expect((await errorOf(response)).message).toBe(
      "this version serves no chat models: -m takes an embedding model or a reranker",
    );
  }
});

test("routes of kinds that are not loaded are 501 and name the flag", async () => {
  await using server = await TestServer.start({ providers: {} });
  const cases = [
    ["/v1/chat/completions", "-m"],
    ["/v1/completions", "-m"],
    ...KNOWN_POST.flatMap((path) =>
      path.includes("rerank")
        ? [
            [path, "--reranker-model"],
            [path, "--rerank "],
          ]
        : [[path, "--embedding-model"]],
    ),
  ];
  for (const [path, flag] of cases) {
    const response = await server.post(path!, {});
    expect(response.status).toBe(501);
    const error = await errorOf(response);
    expect(error.type).toBe("not_implemented");
    expect(error.message).toContain(flag!);
  }
  const metrics = await server.request("/metrics");
  expect(metrics.status).toBe(501);
  expect((await errorOf(metrics)).message).toContain("--metrics");
});
