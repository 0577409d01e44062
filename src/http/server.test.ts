import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../worker/failure.ts";
import { INFO } from "../dialects/testing/context.ts";
import { DeterministicProvider, expectedVector } from "./testing/deterministic-provider.ts";
import { MemoryLogger } from "./testing/memory-logger.ts";
import { embeddingsOf, errorOf, vectorsOf } from "./testing/answers.ts";
import { TestServer } from "./testing/test-server.ts";

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "http-test-"));
  try {
    await body(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

test("one text over each embeddings route", async () => {
  await using server = await TestServer.start();
  const openai = await embeddingsOf(await server.post("/v1/embeddings", { input: "hi" }));
  expect(openai).toEqual({
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: expectedVector("hi") }],
    model: "tiny",
    usage: { prompt_tokens: 3, total_tokens: 3 },
  });
  for (const path of ["/embedding", "/embeddings", "/embed"]) {
    const response = await server.post(path, { content: "hi", inputs: "hi" });
    expect(await vectorsOf(path, response)).toEqual([expectedVector("hi")]);
  }
});

test("the number of cut items is in a header, absent when none was", async () => {
  await using server = await TestServer.start();
  const long = "word ".repeat(40);
  const cut = await server.post("/v1/embeddings", { input: ["hi", long, long] });
  expect(cut.headers.get("x-mlxcel-truncated")).toBe("2");
  const whole = await server.post("/v1/embeddings", { input: "hi" });
  expect(whole.headers.get("x-mlxcel-truncated")).toBeNull();
  const refused = await server.post("/v1/embeddings", { input: ["hi", long], truncate: false });
  expect(refused.status).toBe(400);
  expect((await errorOf(refused)).param).toBe("input[1]");
});

test("the server's truncate setting holds when the request says nothing", async () => {
  await using server = await TestServer.start({ truncate: false });
  const long = "word ".repeat(40);
  expect((await server.post("/v1/embeddings", { input: long })).status).toBe(400);
  expect((await server.post("/v1/embeddings", { input: long, truncate: true })).status).toBe(200);
});

test.each([
  ["busy", 503, "server_busy", "1"],
  ["unavailable", 503, "unavailable_error", "1"],
  ["timeout", 504, "server_timeout", null],
  ["internal", 500, "server_error", null],
  ["invalid", 400, "invalid_request_error", null],
] as const)("a job that fails as %s is %d %s", async (reason, status, type, retryAfter) => {
  await using server = await TestServer.start();
  server.embedder.failure = new Failure(reason, "why it failed", "input[3]");
  const response = await server.post("/v1/embeddings", { input: "hi" });
  expect(response.status).toBe(status);
  expect(response.headers.get("retry-after")).toBe(retryAfter);
  expect(await response.json()).toEqual({
    error: { message: "why it failed", type, code: null, param: "input[3]" },
  });
});

test("while the model loads every route that needs it answers 503, and a failed one 500", async () => {
  await using server = await TestServer.start();
  server.embedder.state = "loading";
  const posts = ["/v1/embeddings", "/embedding", "/embed", "/tokenize"].map((path) =>
    server.post(path, { input: "hi" }),
  );
  const gets = ["/", "/health", "/v1/health", "/v1/models", "/props", "/info"].map((path) =>
    server.request(path),
  );
  for (const response of await Promise.all([...posts, ...gets])) {
    expect(response.status).toBe(503);
    expect(await errorOf(response)).toMatchObject({
      type: "unavailable_error",
      message: "Loading model",
    });
  }
  server.embedder.state = "failed";
  expect((await server.post("/v1/embeddings", { input: "hi" })).status).toBe(500);
  expect((await server.request("/health")).status).toBe(503);
  server.embedder.state = "ready";
  expect(await (await server.request("/health")).json()).toEqual({ status: "ok" });
});

test("models are listed and found by any of their names, percent-encoded or not", async () => {
  await using server = await TestServer.start();
  const entry = {
    id: "tiny",
    object: "model",
    created: 1_700_000_000,
    owned_by: "mlxcel",
    kind: "embedding",
    aliases: ["acme/tiny", "text-embedding-3-small"],
  };
  const judge = { ...entry, id: "judge", kind: "reranker", aliases: ["acme/judge", "rerank-v3.5"] };
  for (const path of ["/v1/models", "/models"]) {
    const list = { object: "list", data: [entry, judge] };
    expect(await (await server.request(path)).json()).toEqual(list);
  }
  for (const id of ["tiny", "acme/tiny", "acme%2Ftiny"]) {
    expect(await (await server.request(`/v1/models/${id}`)).json()).toEqual(entry);
  }
  expect(await (await server.request("/v1/models/judge")).json()).toEqual(judge);
  for (const [id, message] of [
    ["other", 'there is no model "other"; /v1/models lists those that are served'],
    ["tiny/", 'there is no model "tiny/"; /v1/models lists those that are served'],
    ["%E0%A4%A", "the model id in the path is not valid percent-encoding"],
  ] as const) {
    const response = await server.request(`/v1/models/${id}`);
    expect(response.status).toBe(404);
    expect(await errorOf(response)).toMatchObject({ type: "not_found_error", message });
  }
});

test("props describe every model; what a reranker lacks is null", async () => {
  await using server = await TestServer.start();
  expect(await (await server.request("/props")).json()).toEqual({
    models: [
      {
        id: "tiny",
        kind: "embedding",
        family: "bert",
        dim: 8,
        max_length: 16,
        pooling: "mean",
        normalization: "l2",
        multi_vector: false,
        stored_dtype: "float32",
        cpu_precision: "f32",
        limits: {
          max_length: 16,
          vocab_size: 1000,
          max_body_bytes: 4 * 1024 * 1024,
          max_inputs: null,
          max_tokens_per_request: null,
          batch_tokens: 4096,
          queue_depth: 8,
        },
      },
      {
        id: "judge",
        kind: "reranker",
        family: "bert",
        dim: null,
        max_length: 16,
        pooling: null,
        normalization: null,
        multi_vector: false,
        stored_dtype: "float32",
        cpu_precision: "f32",
        limits: {
          max_length: 16,
          vocab_size: 500,
          max_body_bytes: 4 * 1024 * 1024,
          max_inputs: null,
          max_tokens_per_request: null,
          batch_tokens: 4096,
          queue_depth: 8,
        },
      },
    ],
  });
});

test("every answer has a request id: the client's if it is sane, else a new one", async () => {
  await using server = await TestServer.start();
  const echoed = await server.request("/health", { headers: { "x-request-id": "trace-1/a:b" } });
  expect(echoed.headers.get("x-request-id")).toBe("trace-1/a:b");
  for (const id of ['"quoted"', "x".repeat(200), "with space"]) {
    const response = await server.request("/nope", { headers: { "x-request-id": id } });
    expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  }
  const preflight = await server.request("/health", { method: "OPTIONS" });
  expect(preflight.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
});

test("the log has one line per request, without texts, keys or query strings", async () => {
  await using server = await TestServer.start({ apiKeys: ["sesame"] });
  const headers = { authorization: "Bearer sesame", "x-request-id": "r1" };
  await server.post("/v1/embeddings?token=hidden", { input: ["a secret", "text"] }, headers);
  await server.post("/v1/embeddings", '{"input":"a secret', headers);
  await server.post("/v1/embeddings", { input: "a secret" }, { authorization: "Bearer wrong-key" });
  expect(server.logger.lines).toHaveLength(3);
  expect(server.logger.lines[0]).toMatchObject({
    level: "info",
    message: "request",
    fields: {
      method: "POST",
      path: "/v1/embeddings",
      status: 200,
      ms: expect.any(Number),
      requestId: "r1",
      items: 2,
      tokens: 7,
    },
  });
  expect(JSON.stringify(server.logger.lines)).not.toMatch(/secret|sesame|wrong-key|hidden/);
});

test("a client that hangs up aborts its job", async () => {
  await using server = await TestServer.start();
  const gate = Promise.withResolvers<void>();
  server.embedder.gate = gate.promise;
  const body = '{"input":"hi"}';
  const socket = connect(server.port, "127.0.0.1", () => {
    socket.write(`POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length + 1}\r\n\r\n`);
    socket.write('{"inputs":"hi"}');
  });
  while (server.embedder.waiting === 0) await Bun.sleep(1);
  socket.destroy();
  while (server.embedder.aborted === 0) await Bun.sleep(1);
  gate.resolve();
  while (server.logger.lines.length === 0) await Bun.sleep(1);
  expect(server.logger.lines[0]?.fields?.status).toBe(499);
  expect((await server.post("/embed", { inputs: "hi" })).status).toBe(200);
});

test("stop refuses what comes and finishes what runs", async () => {
  const server = await TestServer.start();
  const gate = Promise.withResolvers<void>();
  server.embedder.gate = gate.promise;
  const running = server.post("/v1/embeddings", { input: "hi" });
  while (server.embedder.waiting === 0) await Bun.sleep(1);
  const stopped = server.running.stop();
  const refused = await server.post("/v1/embeddings", { input: "late" });
  expect(refused.status).toBe(503);
  expect((await errorOf(refused)).type).toBe("unavailable_error");
  gate.resolve();
  expect((await running).status).toBe(200);
  await stopped;
  await expect(server.request("/health")).rejects.toThrow();
});

test("a port in use is one clear line", async () => {
  await using server = await TestServer.start();
  const listen = { host: "127.0.0.1", port: server.port };
  await expect(TestServer.start({ listen })).rejects.toThrow(
    `port ${server.port} on 127.0.0.1 is in use: stop what listens there or choose another --port`,
  );
});

test("a socket file that a dead server left is replaced; a live one's is not", async () => {
  await withDirectory(async (directory) => {
    const socketPath = join(directory, "api.sock");
    const child = Bun.spawn([
      process.execPath,
      "-e",
      `Bun.serve({ unix: ${JSON.stringify(socketPath)}, fetch: () => new Response() });`,
    ]);
    while (!existsSync(socketPath)) await Bun.sleep(5);
    child.kill("SIGKILL");
    await child.exited;
    expect(existsSync(socketPath)).toBe(true);

    await using server = await TestServer.start({ listen: { socketPath } });
    const response = await fetch("http://localhost/health", { unix: socketPath });
    expect(response.status).toBe(200);
    expect(server.url).toBe(`unix:${socketPath}`);
    await expect(TestServer.start({ listen: { socketPath } })).rejects.toThrow("another server");
    expect((await fetch("http://localhost/health", { unix: socketPath })).status).toBe(200);
  });
});

test("a file that is no socket is never replaced", async () => {
  await withDirectory(async (directory) => {
    const socketPath = join(directory, "notes.sock");
    await Bun.write(socketPath, "precious");
    await expect(TestServer.start({ listen: { socketPath } })).rejects.toThrow("not a socket");
    expect(await Bun.file(socketPath).text()).toBe("precious");
  });
});

test("TLS files that are no certificate are one clear line", async () => {
  const tls = { cert: "garbage", key: "garbage", certFile: "cert.pem", keyFile: "key.pem" };
  await expect(TestServer.start({ tls })).rejects.toThrow(
    "cert.pem and key.pem are not a PEM certificate and its key",
  );
});

test.each([
  [{ host: "192.0.2.1", port: 0 }, "no such address on this machine"],
  [{ host: "127.0.0.1:8080", port: 0 }, "unknown host; --host takes a name or an address"],
  [{ socketPath: "/no/such/directory/api.sock" }, "no such directory"],
  [{ socketPath: `/tmp/${"long".repeat(40)}.sock` }, "too long for a socket"],
  [{ socketPath: `${import.meta.path}/api.sock` }, "a part of the path is a file"],
])("an address that cannot be listened on is told in words: %j", async (listen, words) => {
  await expect(TestServer.start({ listen })).rejects.toThrow(words);
});

test("a fault on the way to the answer is a 500 in the envelope, and logged", async () => {
  const logger = new MemoryLogger();
  logger.info = () => {
    throw new Error("inner secret");
  };
  await using server = await TestServer.start({ logger });
  const response = await server.request("/props");
  expect(response.status).toBe(500);
  expect(await errorOf(response)).toMatchObject({ type: "server_error" });
  expect(logger.lines).toMatchObject([
    { level: "error", fields: { error: "Error: inner secret" } },
  ]);
});

test("asking for health or the status is logged at debug level only", async () => {
  await using server = await TestServer.start();
  for (const path of ["/", "/health", "/v1/health", "/status"]) await server.request(path);
  await server.request("/props");
  expect(server.logger.lines.map(({ level }) => level)).toEqual([
    "debug",
    "debug",
    "debug",
    "debug",
    "info",
  ]);
});

/** Sends the text and never reads what comes back. */
async function silentClient(port: number, text: string): Promise<Disposable> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(port, "127.0.0.1", () => {
    socket.pause();
    socket.write(text, () => resolve());
  });
  socket.on("error", () => {}); // the server ends it
  await promise;
  return { [Symbol.dispose]: () => void socket.destroy() };
}

test("stop does not wait for clients that never read, or never end their request's head", async () => {
  const server = await TestServer.start({ unreadMs: 50 });
  const body = JSON.stringify({ input: Array(40_000).fill("a") });
  const head = `POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`;
  using _reader = await silentClient(server.port, head + body);
  using _writer = await silentClient(server.port, "GET /health HT");
  while (server.logger.lines.length === 0) await Bun.sleep(1);
  await server.running.stop();
  await expect(server.request("/health")).rejects.toThrow();
});

test("metrics count requests by route and status, with bounded labels", async () => {
  await using server = await TestServer.start({ metrics: true });
  await server.post("/v1/embeddings", { input: ["a", "b c"] });
  await server.post("/v1/embeddings", { input: "" });
  await server.post("/tokenize", { content: "many words that no model sees" });
  await server.post("/props", {});
  await server.request("/made/up/path");
  await server.request("/v1/models/tiny");
  server.embedder.failure = new Failure("busy", "full");
  await server.post("/embed", { inputs: "a" });
  const response = await server.request("/metrics");
  expect(response.headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
  const text = await response.text();
  for (const line of [
    'mlxcel_requests_total{route="/v1/embeddings",status="200"} 1',
    'mlxcel_requests_total{route="/v1/embeddings",status="400"} 1',
    'mlxcel_requests_total{route="other",status="404"} 1',
    'mlxcel_requests_total{route="/v1/models/{id}",status="200"} 1',
    'mlxcel_requests_total{route="/embed",status="503"} 1',
    'mlxcel_requests_total{route="/props",status="405"} 1',
    "mlxcel_items_total 2",
    "mlxcel_tokens_total 7",
    "mlxcel_requests_refused_busy_total 1",
    'mlxcel_queue_waiting{model="tiny",kind="embedding"} 0',
    'mlxcel_model_ready{model="tiny",kind="embedding"} 1',
  ]) {
    expect(text).toContain(line);
  }
  expect(text).toMatch(/process_resident_memory_bytes \d+/);
  expect(text).toContain('mlxcel_request_duration_seconds_count{route="/embed"} 1');
});

test("a request without its key counts for the route that it wanted", async () => {
  await using server = await TestServer.start({ metrics: true, apiKeys: ["sesame"] });
  await server.post("/v1/embeddings", { input: "a" });
  await server.post("/made/up", {});
  const headers = { authorization: "Bearer sesame" };
  const text = await (await server.request("/metrics", { headers })).text();
  expect(text).toContain('mlxcel_requests_total{route="/v1/embeddings",status="401"} 1');
  expect(text).toContain('mlxcel_requests_total{route="other",status="401"} 1');
});

test("a request for more than one answer can hold never reaches the model", async () => {
  const embedder = new DeterministicProvider({ ...INFO, dim: 2 ** 27 });
  await using wide = await TestServer.start({ providers: { embedder } });
  for (const body of [{ input: ["a", "b"] }, { input: ["a", "b".repeat(100_000)] }]) {
    const error = await errorOf(await wide.post("/v1/embeddings", body));
    expect(error).toMatchObject({ type: "invalid_request_error", param: "input" });
    expect(error.message).toContain("send at most 1 items per request");
  }
  expect(embedder.jobs).toEqual([]);
});
