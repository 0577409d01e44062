import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rawExchange } from "./testing/raw-http.ts";
import { TestServer } from "./testing/test-server.ts";

/** Status and JSON body of the answer to these bytes. */
async function answered(address: number | string, head: string, body = "") {
  const length = body === "" ? "" : `content-length: ${body.length}\r\n`;
  const bytes = Buffer.from(`${head}\r\n${length}connection: close\r\n\r\n${body}`, "utf8");
  const { received } = await rawExchange(address, [bytes], () => false);
  const [top = "", json = ""] = received.split("\r\n\r\n");
  return { status: Number(top.split(" ")[1]), body: JSON.parse(json) };
}

/** No Host at all is legal in HTTP/1.0; the others are what proxies and misconfigured clients send. */
const HEADS = [
  "HTTP/1.0",
  "HTTP/1.1\r\nhost: example.org",
  "HTTP/1.1\r\nhost: [::1]:8080",
  ...["", "bücher:8080", "x@y", "a|b", "{svc}", "a/b", "a b", "%", "http://x", "a/embed?"].map(
    (host) => `HTTP/1.1\r\nhost: ${host}`,
  ),
];

describe.each(HEADS)("%j", (version) => {
  test("reaches the route that it names, over TCP", async () => {
    await using server = await TestServer.start();
    await expectRoutes(server.port, version);
  });

  test("reaches the route that it names, over a unix socket", async () => {
    const directory = mkdtempSync(join(tmpdir(), "http-target-"));
    const socketPath = join(directory, "api.sock");
    await using _server = await TestServer.start({ listen: { socketPath } });
    await expectRoutes(socketPath, version);
    rmSync(directory, { recursive: true });
  });
});

async function expectRoutes(address: number | string, version: string): Promise<void> {
  const health = await answered(address, `GET /health?u=http://a/b ${version}`);
  expect(health).toEqual({ status: 200, body: { status: "ok" } });
  const input = '{"input":"hi"}';
  const openai = await answered(address, `POST /v1/embeddings?u=//a/b ${version}`, input);
  expect(openai).toMatchObject({ status: 200, body: { object: "list" } });
  const native = await answered(address, `POST /embeddings ${version}`, input);
  expect(native).toMatchObject({ status: 200, body: [{ index: 0 }] });
  const model = await answered(address, `GET /v1/models/acme/tiny ${version}`);
  expect(model).toMatchObject({ status: 200, body: { id: "tiny" } });
  const unknown = await answered(address, `GET /nope ${version}`);
  expect(unknown).toMatchObject({ status: 404, body: { error: { type: "not_found_error" } } });
}

test.each([
  ["//health", 404],
  ["//x", 404],
  ["///health", 404],
  ["//example.org/health", 404],
  ["/v1//health", 404],
  ["/health/", 404],
  ["/he%61lth", 404],
  // dot segments are resolved, as by any URL parser
  ["/v1/./health", 200],
  ["/v1/x/../health", 200],
  ["/v1/%2e%2E/health", 200],
  ["/../health", 200],
  ["/health#fragment", 200],
  ["http://example.org/health", 200],
] as const)("GET %s is %d, with a Host and without", async (target, status) => {
  await using server = await TestServer.start({ apiKeys: ["sesame"] });
  const key = "x-api-key: sesame";
  for (const version of [`HTTP/1.1\r\nhost: x\r\n${key}`, `HTTP/1.0\r\n${key}`]) {
    const { status: actual } = await answered(server.port, `GET ${target} ${version}`);
    expect(actual).toBe(status);
  }
});

test.each(["/v1/x/../../props", "/health/../props", "//props", "/./props"])(
  "%s does not get past the key",
  async (target) => {
    await using server = await TestServer.start({ apiKeys: ["sesame"] });
    for (const version of ["HTTP/1.1\r\nhost: x", "HTTP/1.1\r\nhost:", "HTTP/1.0"]) {
      expect((await answered(server.port, `GET ${target} ${version}`)).status).toBe(401);
    }
  },
);

test("CONNECT names a host instead of a path, which is nothing here", async () => {
  await using server = await TestServer.start();
  const { status, body } = await answered(
    server.port,
    "CONNECT example.org:80 HTTP/1.1\r\nhost: example.org:80",
  );
  expect(status).toBe(404);
  expect(body.error.message).toBe(
    "there is nothing at example.org:80; embeddings are at /v1/embeddings, ranking is at /v1/rerank",
  );
});
