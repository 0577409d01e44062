import { expect, test } from "bun:test";
import { TestServer } from "./testing/test-server.ts";

const PAGE = "https://app.example";
const PREFLIGHT = {
  origin: PAGE,
  "access-control-request-method": "POST",
  "access-control-request-headers": "authorization,content-type",
};

test("a pre-flight needs no key and is told what it may send", async () => {
  await using server = await TestServer.start({ apiKeys: ["sesame"] });
  for (const path of ["/v1/embeddings", "/nope"]) {
    const response = await server.request(path, { method: "OPTIONS", headers: PREFLIGHT });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe(PAGE);
    expect(response.headers.get("access-control-allow-methods")).toContain("POST");
    expect(response.headers.get("access-control-allow-headers")).toBe("authorization,content-type");
  }
});

test("errors can be read by the page that caused them", async () => {
  await using server = await TestServer.start({ apiKeys: ["sesame"] });
  const unauthorized = await server.post("/v1/embeddings", {}, { origin: PAGE });
  expect(unauthorized.status).toBe(401);
  expect(unauthorized.headers.get("access-control-allow-origin")).toBe(PAGE);
  const key = { origin: PAGE, authorization: "Bearer sesame" };
  for (const [path, status] of [
    ["/nope", 404],
    ["/v1/embeddings", 400],
  ] as const) {
    const response = await server.post(path, {}, key);
    expect(response.status).toBe(status);
    expect(response.headers.get("access-control-allow-origin")).toBe(PAGE);
    expect(response.headers.get("vary")).toBe("Origin");
  }
});

test("a list of origins shuts out all others", async () => {
  await using server = await TestServer.start({ corsOrigins: [PAGE] });
  const allowed = await server.request("/health", { headers: { origin: PAGE } });
  expect(allowed.headers.get("access-control-allow-origin")).toBe(PAGE);
  const other = await server.request("/health", { headers: { origin: "https://evil.example" } });
  expect(other.status).toBe(200);
  expect(other.headers.get("access-control-allow-origin")).toBeNull();
});

test("* in the list allows any origin", async () => {
  await using server = await TestServer.start({ corsOrigins: ["*"] });
  const response = await server.request("/health", { headers: { origin: PAGE } });
  expect(response.headers.get("access-control-allow-origin")).toBe(PAGE);
});

test("requests without an origin get no CORS headers", async () => {
  await using server = await TestServer.start();
  const response = await server.request("/health");
  expect(response.headers.get("access-control-allow-origin")).toBeNull();
});
