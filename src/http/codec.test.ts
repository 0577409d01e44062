import { expect, test } from "bun:test";
import { CONTEXT, jsonOf, RERANK_CONTEXT, rerankResult } from "../dialects/testing/context.ts";
import { textsOf, unpackItems } from "../worker/items.ts";
import type { Body } from "./body.ts";
import { Codec } from "./codec.ts";
import { expectedVector } from "./testing/deterministic-provider.ts";
import { MemoryLogger } from "./testing/memory-logger.ts";
import { vectorsOf } from "./testing/answers.ts";
import { TestServer } from "./testing/test-server.ts";

const WORKER = new URL("./codec-worker.ts", import.meta.url);

/** A value as JSON in two chunks, cut inside of its first character beyond ASCII. */
function bodyOf(value: unknown): Body {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const cut = bytes.findIndex((byte) => byte > 127) + 1;
  return { chunks: [bytes.slice(0, cut), bytes.slice(cut)], byteLength: bytes.byteLength };
}

test("parses as the HTTP thread does, with the items packed", async () => {
  const codec = new Codec(WORKER, new MemoryLogger());
  const input = ["grün", "😀", "x\ud83d"];
  const { job, render } = await codec.parse("openai/embeddings", bodyOf({ input }), CONTEXT);
  codec.stop();
  expect(render).toEqual({ kind: "vectors", model: "tiny", encoding: "float" });
  expect(job.kind === "embed" && unpackItems(job.items)).toEqual([
    { text: "grün" },
    { text: "😀" },
    { text: "x\ufffd" },
  ]);
});

test("the documents of a rerank request come back packed, their echo beside them", async () => {
  const codec = new Codec(WORKER, new MemoryLogger());
  const documents = [{ text: "grün", id: 1 }, "😀"];
  const body = bodyOf({ query: "q", documents, return_documents: true });
  const { job, render } = await codec.parse("rerank", body, RERANK_CONTEXT);
  expect(job.kind === "rerank" && "offsets" in job.items && textsOf(job.items)).toEqual([
    "grün",
    "😀",
  ]);
  const answer = await codec.render("rerank", rerankResult([0.25, 0.5]), render);
  codec.stop();
  expect(jsonOf(answer)).toMatchObject({
    results: [
      { index: 1, document: "😀" },
      { index: 0, document: { text: "grün", id: 1 } },
    ],
  });
});

test("failures keep their reason and their field", async () => {
  const codec = new Codec(WORKER, new MemoryLogger());
  const parsing = codec.parse("openai/embeddings", bodyOf({ input: ["a", ""] }), CONTEXT);
  await expect(parsing).rejects.toMatchObject({ reason: "invalid", param: "input[1]" });
  codec.stop();
});

test("a worker that dies fails its requests and is replaced", async () => {
  const logger = new MemoryLogger();
  const script = `
    self.onmessage = ({ data }) => {
      if (data.task.dialect === "tei/embed") throw new Error("crash");
      self.postMessage({ id: data.id, outcome: { type: "rendered", body: new Uint8Array(1) } });
    };`;
  const codec = new Codec(new URL(URL.createObjectURL(new Blob([script]))), logger);
  const result = () => ({
    kind: "embed" as const,
    vectors: new Float32Array(2),
    dim: 2,
    tokens: new Int32Array(1),
    truncated: 0,
  });
  const options = { kind: "vectors", model: "tiny", encoding: "float" } as const;
  await expect(codec.render("tei/embed", result(), options)).rejects.toMatchObject({
    reason: "internal",
  });
  expect(await codec.render("openai/embeddings", result(), options)).toHaveLength(1);
  expect(logger.lines.map(({ level }) => level)).toEqual(["error"]);
  codec.stop();
});

test("big requests with big answers give what small ones give", async () => {
  await using server = await TestServer.start();
  const input = Array.from({ length: 2000 }, (_, i) => `text number ${i} ${"pad ".repeat(8)}`);
  for (const path of ["/v1/embeddings", "/embedding", "/embed"]) {
    const response = await server.post(path, { input, inputs: input });
    expect(response.status).toBe(200);
    const rows = await vectorsOf(path, response);
    expect(rows).toHaveLength(2000);
    for (const i of [0, 999, 1999]) expect(rows[i]!).toEqual(expectedVector(input[i]!));
  }
});

test("a small request may have a big answer", async () => {
  await using server = await TestServer.start();
  const input = Array.from({ length: 2000 }, () => "a");
  const response = await server.post("/v1/embeddings", { input, encoding_format: "base64" });
  expect(await response.json()).toMatchObject({
    data: expect.any(Array),
    usage: { prompt_tokens: 6000, total_tokens: 6000 },
  });
});
