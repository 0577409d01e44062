import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { fixture, referenceCase } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { embed, embedOne, expectAlive, expectVector, refusalOf } from "./answers.ts";
import { Connection } from "./connection.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-mean")];
const MEBIBYTE = 1024 * 1024;
const emoji = referenceCase("bert-mean", "emoji_zwj");

let server: Server;
beforeAll(async () => {
  server = await startServer(MODEL);
});
afterAll(() => server?.stop());

async function connected<T>(port: number, use: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await Connection.open(port);
  try {
    return await use(connection);
  } finally {
    connection.close();
  }
}

function vectorOf(body: string): number[] {
  return JSON.parse(body).data[0].embedding;
}

describe("legal framing", () => {
  test.each([1, 2, 3, 7])("chunks of %d bytes that split characters", async (size) => {
    await connected(server.port, async (connection) => {
      const bytes = Buffer.from(JSON.stringify({ input: emoji.input }));
      connection.head("POST", "/v1/embeddings", ["transfer-encoding: chunked"]);
      for (let at = 0; at < bytes.length; at += size)
        connection.chunk(bytes.subarray(at, at + size));
      connection.lastChunk();
      const { status, body } = await connection.answer();
      expect(status).toBe(200);
      expectVector(vectorOf(body), emoji.embedding);
    });
  });

  test.each([
    "application/json; charset=utf-8",
    "Application/JSON",
    "application/x-www-form-urlencoded",
    "text/plain",
    "nonsense",
  ])("content type %s", async (type) => {
    const response = await server.post("/v1/embeddings", '{"input":"vector"}', {
      "content-type": type,
    });
    expect(response.status).toBe(200);
  });

  test("no content type, and a body that comes after its head", async () => {
    await connected(server.port, async (connection) => {
      const body = JSON.stringify({ input: "vector" });
      connection.head("POST", "/v1/embeddings", [`content-length: ${body.length}`]);
      for (const letter of body) {
        connection.send(letter);
        await Bun.sleep(1);
      }
      expect((await connection.answer()).status).toBe(200);
    });
  });

  test("a client that asks before it sends its body", async () => {
    await connected(server.port, async (connection) => {
      connection.post("/v1/embeddings", '{"input":"vector"}', ["expect: 100-continue"]);
      expect((await connection.answer()).status).toBe(200);
    });
  });

  test("a multipart body is a JSON 400", async () => {
    const form = new FormData();
    form.append("input", "vector");
    const response = await server.fetch("/v1/embeddings", { method: "POST", body: form });
    expect(await refusalOf(response)).toMatchObject({ status: 400, type: "invalid_request_error" });
  });
});

describe("one connection", () => {
  const bodies = Array.from({ length: 10 }, (_, i) =>
    i === 4 ? '{"input":' : '{"input":"vector"}',
  );
  const statuses = bodies.map((_, i) => (i === 4 ? 400 : 200));

  test("a bad request among ten leaves the others and the connection alone", async () => {
    await connected(server.port, async (connection) => {
      const seen: number[] = [];
      for (const body of bodies) {
        connection.post("/v1/embeddings", body);
        seen.push((await connection.answer()).status);
      }
      expect(seen).toEqual(statuses);
    });
  });

  test.each(["/nope", "/health", "/v1/rerank", "/embed"])(
    "a refused POST to %s with a body",
    async (path) => {
      await connected(server.port, async (connection) => {
        connection.post(path, '{"input":""}');
        expect((await connection.answer()).status).toBeGreaterThanOrEqual(400);
        connection.post("/v1/embeddings", '{"input":"vector"}');
        expect((await connection.answer()).status).toBe(200);
      });
    },
  );

  test("the answer to HEAD has no body", async () => {
    await connected(server.port, async (connection) => {
      for (const path of ["/health", "/v1/models", "/embed"]) {
        connection.head("HEAD", path, []);
        await connection.answer({ toHead: true });
      }
      connection.head("GET", "/health", []);
      expect(JSON.parse((await connection.answer()).body)).toMatchObject({ status: "ok" });
    });
  });
});

describe("size of the body", () => {
  let small: Server;
  beforeAll(async () => {
    small = await startServer([...MODEL, "--max-body-size", "1MB"]);
  });
  afterAll(() => small?.stop());

  test("a length announced above the limit is a 413 at once", async () => {
    await connected(small.port, async (connection) => {
      connection.head("POST", "/v1/embeddings", [`content-length: ${5 * MEBIBYTE}`]);
      const { status, headers, body } = await connection.answer();
      expect(status).toBe(413);
      expect(headers.get("content-type")).toStartWith("application/json");
      expect(JSON.parse(body).error).toMatchObject({ type: "invalid_request_error", code: null });
      expect(JSON.parse(body).error.message).toContain("--max-body-size");
    });
    await expectAlive(small);
  });

  test("chunks above the limit are a 413 too", async () => {
    await connected(small.port, async (connection) => {
      connection.head("POST", "/v1/embeddings", ["transfer-encoding: chunked"]);
      for (let i = 0; i < 5; i++) connection.chunk(Buffer.alloc(MEBIBYTE / 4, " "));
      const { status, body } = await connection.answer();
      expect(status).toBe(413);
      expect(JSON.parse(body).error.type).toBe("invalid_request_error");
    });
    await expectAlive(small);
  });

  test("every route with a body has the limit", async () => {
    const body = `{"input":"${"a".repeat(MEBIBYTE)}"}`;
    for (const path of ["/embedding", "/embeddings", "/embed", "/tokenize", "/detokenize"]) {
      expect((await refusalOf(await small.post(path, body))).status).toBe(413);
    }
  });

  test("a body just below the limit is served", async () => {
    const body = `{"input":"vector"${" ".repeat(999_000)}}`;
    expect((await small.post("/v1/embeddings", body)).status).toBe(200);
  });

  test("64 MiB is the default", async () => {
    const filled = (bytes: number) => {
      const body = Buffer.alloc(bytes, " ");
      body.write('{"input":"vector"}');
      return body;
    };
    expect((await server.post("/v1/embeddings", filled(64 * MEBIBYTE))).status).toBe(200);
    const refusal = await refusalOf(await server.post("/v1/embeddings", filled(64 * MEBIBYTE + 1)));
    expect(refusal.status).toBe(413);
    await expectAlive(server);
  });

  test("--max-body-size takes plain bytes and units", async () => {
    await using tiny = await startServer([...MODEL, "--max-body-size", "100"]);
    expect((await tiny.post("/v1/embeddings", { input: "vector" })).status).toBe(200);
    const response = await tiny.post("/v1/embeddings", { input: "a".repeat(100) });
    expect((await refusalOf(response)).status).toBe(413);
  });
});

describe("hostile bodies", () => {
  test("deep nesting is a 400", async () => {
    for (const depth of [1_000, 100_000, 2_000_000]) {
      const deep = "[".repeat(depth);
      for (const body of [
        deep,
        `{"input":${deep}${"]".repeat(depth)}}`,
        `{"input":${'{"a":'.repeat(depth)}`,
      ]) {
        expect((await refusalOf(await server.post("/v1/embeddings", body))).status).toBe(400);
      }
    }
    await expectAlive(server);
  });

  test("invalid UTF-8 is a 200 or a 400, never more", async () => {
    const sequences = [
      [0xff],
      [0xc3, 0x28],
      [0xed, 0xa0, 0x80],
      [0xf8, 0x88, 0x80, 0x80, 0x80],
      [0xc0, 0x80],
    ];
    for (const bytes of sequences) {
      const parts = [Buffer.from('{"input":"a'), Buffer.from(bytes), Buffer.from('"}')];
      const response = await server.post("/v1/embeddings", Buffer.concat(parts));
      expect([200, 400]).toContain(response.status);
      await response.text();
    }
    const utf16 = new Uint8Array(Buffer.from('{"input":"vector"}', "utf16le"));
    expect((await refusalOf(await server.post("/v1/embeddings", utf16))).status).toBe(400);
    await expectAlive(server);
  });

  test("numbers beyond every range are a 400", async () => {
    for (const number of ["1e999", "-1e999", "99999999999999999999", "-0.5", "2147483648"]) {
      for (const body of [`{"input":[${number}]}`, `{"input":"a","dimensions":${number}}`]) {
        expect((await refusalOf(await server.post("/v1/embeddings", body))).status).toBe(400);
      }
    }
  });

  test("names of built-in properties are ordinary unknown fields", async () => {
    const body = '{"input":"vector","__proto__":{"model":"x"},"constructor":1,"toString":2}';
    expect((await server.post("/v1/embeddings", body)).status).toBe(200);
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const response = await server.post("/v1/embeddings", { input: "vector", prompt_name: name });
      expect((await refusalOf(response)).status).toBe(400);
    }
  });

  test("half a million token ids are one item, cut", async () => {
    const input = Array.from({ length: 500_000 }, (_, i) => i % 1000);
    const answer = await embed(server, { input });
    expect(answer).toMatchObject({ tokens: 96, truncated: "1" });
    expectVector(answer.vectors[0] ?? [], await embedOne(server, input.slice(0, 96)));
    input[499_999] = 1000;
    const refusal = await refusalOf(await server.post("/v1/embeddings", { input }));
    expect(refusal).toMatchObject({ status: 400, param: "input[499999]" });
  });

  test("ten thousand items are ten thousand vectors in order", async () => {
    const ids = Array.from({ length: 10_000 }, (_, i) => [i % 1000, 3]);
    const { vectors, tokens } = await embed(server, { input: ids });
    expect(vectors).toHaveLength(10_000);
    expect(tokens).toBe(20_000);
    for (const i of [0, 999, 1000, 5432, 9999]) {
      expectVector(vectors[i] ?? [], await embedOne(server, ids[i]));
    }
  });

  test("clients that send slowly or never end do not hold up the others", async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, () => Connection.open(server.port)));
    for (const [i, connection] of slow.entries()) {
      if (i % 3 === 0) connection.send("POST /v1/embeddings HT");
      else if (i % 3 === 1) connection.head("POST", "/v1/embeddings", ["content-length: 1000"]);
      else connection.head("POST", "/v1/embeddings", ["transfer-encoding: chunked"]);
    }
    for (const connection of slow.slice(0, 25)) connection.send("x");
    for (let i = 0; i < 5; i++) await expectAlive(server);
    for (const connection of slow) connection.close();
    await expectAlive(server);
  });

  test.each([
    "GET\r\n\r\n",
    "POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
    "POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    `GET /health HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(1_000_000)}\r\n\r\n`,
    "\u0000\u0001\u0002",
  ])("bytes that are not HTTP harm nobody: %#", async (bytes) => {
    await connected(server.port, async (connection) => {
      connection.send(bytes);
      await Bun.sleep(20);
    });
    await expectAlive(server);
  });
});
