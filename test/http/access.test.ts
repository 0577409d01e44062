import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixture, temporaryDirectory } from "../checkpoints.ts";
import { type Headers, type Server, startServer } from "../server.ts";
import { okJson, refusalOf } from "./answers.ts";

setDefaultTimeout(60_000);

const MODEL = ["--embedding-model", fixture("bert-mean")];
const ORIGIN = "https://app.example";
const KEY = "sk-first+key=";
const SECOND_KEY = "sk-second";

function accepts(server: Server, headers: Headers): Promise<number> {
  return server.post("/v1/embeddings", { input: "vector" }, headers).then((r) => r.status);
}

describe("API keys", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer([
      ...MODEL,
      "--api-key",
      `${KEY},${SECOND_KEY}`,
      "--api-key",
      "third",
    ]);
  });
  afterAll(() => server?.stop());

  const right: Headers[] = [
    { authorization: `Bearer ${KEY}` },
    { authorization: `bearer ${KEY}` },
    { authorization: `BEARER ${SECOND_KEY}` },
    { authorization: KEY },
    { "x-api-key": KEY },
    { "X-API-KEY": SECOND_KEY },
    { authorization: "Bearer third" },
  ];
  test.each(right)("%j passes", async (headers) => {
    expect(await accepts(server, headers)).toBe(200);
  });

  const wrong: Headers[] = [
    {},
    { authorization: "" },
    { authorization: "Bearer" },
    { authorization: "Bearer " },
    { authorization: `Bearer ${KEY}x` },
    { authorization: `Bearer ${KEY.slice(0, -1)}` },
    { authorization: `Bearer ${KEY},${SECOND_KEY}` },
    { authorization: `Basic ${KEY}` },
    { authorization: `Bearer ${KEY.toUpperCase()}` },
    { "x-api-key": "" },
    { "x-api-key": `Bearer ${KEY}` },
    { "x-api-key": "wrong" },
    { "api-key": KEY },
    { cookie: `authorization=${KEY}` },
  ];
  test.each(wrong)("%j is a 401", async (headers) => {
    const refusal = await refusalOf(await server.post("/v1/embeddings", { input: "a" }, headers));
    expect(refusal).toMatchObject({ status: 401, type: "authentication_error" });
    expect(refusal.headers.get("www-authenticate")).toBe("Bearer");
    expect(refusal.message).not.toContain(KEY);
  });

  test("a key in the query string is no key", async () => {
    const response = await server.post(`/v1/embeddings?api_key=${KEY}`, { input: "a" });
    expect((await refusalOf(response)).status).toBe(401);
  });

  test("liveness is public, everything else needs the key", async () => {
    for (const path of ["/", "/health", "/v1/health"]) await okJson(await server.get(path));
    const closed = ["/v1/models", "/models", "/v1/models/bert-mean", "/props", "/info", "/metrics"];
    for (const path of [...closed, "/nope", "/health/", "/v1/embeddings"]) {
      expect((await refusalOf(await server.get(path))).status).toBe(401);
    }
    for (const path of ["/embedding", "/embed", "/tokenize", "/detokenize", "/v1/rerank"]) {
      expect((await refusalOf(await server.post(path, {}))).status).toBe(401);
    }
    expect((await server.get("/v1/models", { "x-api-key": KEY })).status).toBe(200);
  });

  test("a browser's pre-flight needs no key, and the refusal of the real call is readable", async () => {
    const preflight = await server.fetch("/v1/embeddings", {
      method: "OPTIONS",
      headers: {
        origin: ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe(ORIGIN);
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
    const allowed = preflight.headers.get("access-control-allow-headers")?.toLowerCase();
    expect(allowed).toContain("authorization");
    expect(allowed).toContain("content-type");
    const refused = await server.post("/v1/embeddings", { input: "a" }, { origin: ORIGIN });
    expect(refused.headers.get("access-control-allow-origin")).toBe(ORIGIN);
    expect((await refusalOf(refused)).status).toBe(401);
  });
});

describe("where keys come from", () => {
  test("a key file: one per line, blanks and comments aside", async () => {
    const path = join(temporaryDirectory(), "keys.txt");
    writeFileSync(path, `# ours\n${KEY}\r\n\n  ${SECOND_KEY}  \n`);
    await using server = await startServer([
      ...MODEL,
      "--api-key-file",
      path,
      "--api-key",
      "third",
    ]);
    for (const key of [KEY, SECOND_KEY, "third"]) {
      expect(await accepts(server, { "x-api-key": key })).toBe(200);
    }
    for (const key of ["# ours", "", "ours"]) {
      expect(await accepts(server, { "x-api-key": key })).toBe(401);
    }
  });

  test.each(["MLXCEL_API_KEY", "LLAMA_API_KEY"])("the variable %s", async (name) => {
    await using server = await startServer(MODEL, { env: { [name]: KEY } });
    expect(await accepts(server, { "x-api-key": KEY })).toBe(200);
    expect(await accepts(server, {})).toBe(401);
  });
});

describe("CORS", () => {
  test("any origin is echoed by default, on successes and errors", async () => {
    await using server = await startServer(MODEL);
    const answers = [
      await server.post("/v1/embeddings", { input: "vector" }, { origin: ORIGIN }),
      await server.post("/v1/embeddings", "{", { origin: ORIGIN }),
      await server.get("/nope", { origin: ORIGIN }),
      await server.get("/embed", { origin: ORIGIN }),
      await server.fetch("/nope", { method: "OPTIONS", headers: { origin: ORIGIN } }),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 400, 404, 405, 204]);
    for (const { headers } of answers) {
      expect(headers.get("access-control-allow-origin")).toBe(ORIGIN);
    }
  });

  test("--cors-origins restricts the echo", async () => {
    const list = `${ORIGIN},https://other.example`;
    await using server = await startServer([...MODEL, "--cors-origins", list]);
    const allowed = async (origin: string) =>
      (await server.get("/health", { origin })).headers.get("access-control-allow-origin");
    expect(await allowed(ORIGIN)).toBe(ORIGIN);
    expect(await allowed("https://other.example")).toBe("https://other.example");
    for (const origin of [
      "https://evil.example",
      `${ORIGIN}.evil.example`,
      "http://app.example",
      "null",
    ]) {
      expect(await allowed(origin)).toBeNull();
    }
  });
});
