import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { fixture } from "../checkpoints.ts";
import { embedOne, expectVectors } from "../http/answers.ts";
import { type Server, startServer } from "../server.ts";
import { many, MODEL, one } from "./reference.ts";

const hasCurl = Bun.which("curl") !== null;
const title = hasCurl ? "curl" : "curl: skipped, it is not installed on this machine";

const Envelope = z.object({ data: z.array(z.object({ embedding: z.array(z.number()) })) });
const Native = z.array(z.object({ embedding: z.array(z.array(z.number())) }));

describe.skipIf(!hasCurl)(title, () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer(["--embedding-model", fixture(MODEL)]);
  });
  afterAll(() => server?.stop());

  /** What a user pastes into a shell; -d alone sends a form's content type. */
  async function paste(line: string): Promise<{ exitCode: number; json: unknown }> {
    const env = { PATH: process.env["PATH"] ?? "", NO_PROXY: "127.0.0.1" };
    const child = Bun.spawn(["sh", "-c", line], { env, stdout: "pipe", stderr: "ignore" });
    const text = await child.stdout.text();
    const exitCode = await child.exited;
    return { exitCode, json: JSON.parse(text) };
  }

  function post(path: string, body: unknown, options = ""): string {
    // Inside single quotes a shell takes everything but the quote itself as it is.
    const quoted = JSON.stringify(body).replaceAll("'", "\\u0027");
    return `curl -s ${options} ${server.url}${path} -d '${quoted}'`;
  }

  async function vectors(line: string): Promise<number[][]> {
    const { json } = await paste(line);
    return Envelope.parse(json).data.map((entry) => entry.embedding);
  }

  test("the line of the banner works when it is pasted", async () => {
    const line = /^ *(curl .*)$/m.exec(server.stdout())?.[1] ?? "";
    const input = /"input": "(.*)"/.exec(line)?.[1];
    expectVectors(await vectors(line), [await embedOne(server, input)]);
  });

  test("one text and many texts", async () => {
    expectVectors(await vectors(post("/v1/embeddings", { input: one.input })), [one.embedding]);
    expectVectors(await vectors(post("/v1/embeddings", { input: many.texts })), many.vectors);
  });

  test("the llama-server route", async () => {
    const { json } = await paste(post("/embedding", { content: one.input }));
    const [entry] = Native.parse(json);
    expectVectors(entry?.embedding ?? [], [one.embedding]);
  });

  test("a refusal is JSON that says why, and --fail-with-body sees it", async () => {
    const line = post("/v1/embeddings", { input: one.input, dimensions: 0 }, "--fail-with-body");
    const { exitCode, json } = await paste(line);
    expect(exitCode).toBe(22);
    expect(json).toMatchObject({
      error: { param: "dimensions", message: expect.stringContaining("dimensions") },
    });
  });

  test("JSON that the shell has broken is refused in one line", async () => {
    const { json } = await paste(`curl -s ${server.url}/v1/embeddings -d "{"input": "hello"}"`);
    expect(json).toMatchObject({
      error: { type: "invalid_request_error", message: expect.stringMatching(/^.*JSON.*$/) },
    });
  });
});
