import { expect, test } from "bun:test";
import { errorOf } from "./testing/answers.ts";
import { TestServer } from "./testing/test-server.ts";

const KEYS = { apiKeys: ["sesame", "second-key"] };

test.each([
  ["authorization", "Bearer sesame"],
  ["authorization", "bearer sesame"],
  ["authorization", "BEARER  second-key"],
  ["authorization", "sesame"],
  ["x-api-key", "sesame"],
])("%s: %s is a way to send a key", async (name, value) => {
  await using server = await TestServer.start(KEYS);
  const response = await server.post("/v1/embeddings", { input: "a" }, { [name]: value });
  expect(response.status).toBe(200);
});

test.each<[string, Record<string, string>]>([
  ["no key", {}],
  ["a wrong key", { authorization: "Bearer sesamE" }],
  ["a part of a key", { authorization: "Bearer sesam" }],
  ["an empty key", { authorization: "Bearer " }],
  ["another scheme", { authorization: "Basic sesame" }],
  ["two keys in one", { "x-api-key": "sesame,second-key" }],
])("%s is 401 with a challenge", async (_, headers) => {
  await using server = await TestServer.start(KEYS);
  for (const path of ["/v1/models", "/nope", "/metrics", "/props"]) {
    const response = await server.request(path, { headers });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect((await errorOf(response)).type).toBe("authentication_error");
  }
});

test("health stays public", async () => {
  await using server = await TestServer.start(KEYS);
  for (const path of ["/", "/health", "/v1/health"]) {
    expect((await server.request(path)).status).toBe(200);
  }
});

test("without keys nothing is asked for", async () => {
  await using server = await TestServer.start();
  expect((await server.request("/v1/models")).status).toBe(200);
});
