import { expect, test } from "bun:test";
import { expectedVector } from "./testing/deterministic-provider.ts";
import { rawExchange, statusCount } from "./testing/raw-http.ts";
import { embeddingsOf, errorOf } from "./testing/answers.ts";
import { TestServer } from "./testing/test-server.ts";

const HEAD = "POST /v1/embeddings HTTP/1.1\r\nhost: x\r\n";

test("the content type does not matter", async () => {
  await using server = await TestServer.start();
  for (const type of [
    "application/json; charset=utf-8",
    "Application/JSON",
    "text/plain",
    "application/x-www-form-urlencoded",
  ]) {
    const response = await server.post("/v1/embeddings", { input: "hi" }, { "content-type": type });
    expect(response.status).toBe(200);
  }
  const body = '{"input":"hi"}';
  const { received } = await rawExchange(
    server.port,
    [`${HEAD}content-length: ${body.length}\r\n\r\n${body}`],
    (text) => text.includes("usage"),
  );
  expect(statusCount(received, 200)).toBe(1);
});

test("multipart bodies are refused", async () => {
  await using server = await TestServer.start();
  const form = new FormData();
  form.set("input", "hi");
  const response = await server.request("/v1/embeddings", { method: "POST", body: form });
  expect(response.status).toBe(400);
  expect((await errorOf(response)).message).toContain("multipart");
});

test("a compressed body is refused by its header; identity is no compression", async () => {
  await using server = await TestServer.start();
  const post = (encoding: string, body: string | Uint8Array<ArrayBuffer>) =>
    server.request("/v1/embeddings", {
      method: "POST",
      headers: { "content-encoding": encoding },
      body,
    });
  const zipped = Bun.gzipSync('{"input":"hi"}');
  for (const encoding of ["gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip"]) {
    const response = await post(encoding, zipped);
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain("content-encoding");
  }
  for (const encoding of ["identity", " Identity ", ""]) {
    expect((await post(encoding, '{"input":"hi"}')).status).toBe(200);
  }
});

test("a chunked body may split a character", async () => {
  await using server = await TestServer.start();
  const body = Buffer.from('{"input":"grün 😀"}');
  const cut = body.indexOf(0xf0) + 2;
  const chunk = (part: Buffer) =>
    Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]);
  const { received } = await rawExchange(
    server.port,
    [
      `${HEAD}transfer-encoding: chunked\r\n\r\n`,
      chunk(body.subarray(0, cut)),
      chunk(body.subarray(cut)),
      "0\r\n\r\n",
    ],
    (text) => text.includes("usage"),
  );
  const answer = JSON.parse(received.slice(received.indexOf("\r\n\r\n") + 4));
  expect(answer.data[0].embedding.map(Math.fround)).toEqual(expectedVector("grün 😀"));
});

test("a byte order mark is ignored", async () => {
  await using server = await TestServer.start();
  const response = await server.post("/v1/embeddings", '\ufeff{"input":"hi"}');
  expect((await embeddingsOf(response)).data[0]?.embedding).toEqual(expectedVector("hi"));
});

test.each<[string, string | Uint8Array<ArrayBuffer>]>([
  ["nothing", ""],
  ["white space", "  \n"],
  ["broken JSON", '{"input":"a"'],
  ["a list", "[]"],
  ["a string", '"x"'],
  ["null", "null"],
  ["invalid UTF-8", new Uint8Array([...Buffer.from('{"input":"'), 0xff, ...Buffer.from('"}')])],
  ["deep nesting inline", `{"input":${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
  ["deep nesting", `{"input":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ["deep nesting of objects", `${'{"input":'.repeat(100_000)}1${"}".repeat(100_000)}`],
  ["nesting without an end", "[".repeat(100_000)],
])("%s as a body is 400 JSON, and the server lives", async (_, body) => {
  await using server = await TestServer.start();
  const response = await server.request("/v1/embeddings", { method: "POST", body });
  expect(response.status).toBe(400);
  expect((await errorOf(response)).type).toBe("invalid_request_error");
  expect((await server.post("/v1/embeddings", { input: "ok" })).status).toBe(200);
});

test("one bad request of ten leaves the connection to the others", async () => {
  await using server = await TestServer.start();
  const message = (body: string) => `${HEAD}content-length: ${body.length}\r\n\r\n${body}`;
  const pieces = Array.from({ length: 10 }, (_, i) => message(i === 4 ? "{" : '{"input":"a"}'));
  const { received } = await rawExchange(
    server.port,
    pieces,
    (text) => statusCount(text, 200) + statusCount(text, 400) === 10 && text.endsWith("}"),
  );
  expect(statusCount(received, 200)).toBe(9);
  expect(statusCount(received, 400)).toBe(1);
});

test("a body over the limit is 413 JSON, announced or chunked, and the server lives", async () => {
  await using server = await TestServer.start({ maxBodyBytes: 200_000 });
  const big = JSON.stringify({ input: "x".repeat(300_000) });
  const chunked = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < big.length; at += 50_000) {
        controller.enqueue(Buffer.from(big.slice(at, at + 50_000)));
      }
      controller.close();
    },
  });
  for (const body of [big, chunked]) {
    const response = await server.request("/v1/embeddings", { method: "POST", body });
    expect(response.status).toBe(413);
    const error = await errorOf(response);
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain("--max-body-size");
  }
  const fits = JSON.stringify({ input: "x".repeat(200_000 - '{"input":""}'.length) });
  expect((await server.post("/v1/embeddings", fits)).status).toBe(200);
});

test.each([
  ["announced", "content-length: 100\r\n\r\n", '{"in'],
  ["chunked", "transfer-encoding: chunked\r\n\r\n", '4\r\n{"in\r\n'],
])("a body that stands still (%s) is given up", async (_, framing, start) => {
  await using server = await TestServer.start({ bodyStallMs: 50 });
  const { received, closed } = await rawExchange(
    server.port,
    [HEAD + framing + start],
    () => false,
  );
  expect(closed).toBe(true);
  expect(statusCount(received, 400)).toBe(1);
  expect(received).toContain("stood still");
});

test("a server that stops does not wait for the rest of a body", async () => {
  const server = await TestServer.start();
  const framings = ["content-length: 100\r\n\r\n{", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"];
  const exchanges = framings.map((framing) =>
    rawExchange(server.port, [HEAD + framing], () => false),
  );
  await Bun.sleep(50);
  await server.running.stop();
  for (const { received, closed } of await Promise.all(exchanges)) {
    expect(statusCount(received, 503)).toBe(1);
    expect(closed).toBe(true);
  }
});
