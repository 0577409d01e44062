import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import OpenAI from "openai";
import { z } from "zod";
import { embedNative, expectVectors, okJson } from "../http/answers.ts";
import { type Server, startServer } from "../server.ts";
import { demoModelFlags, expectPublishedSimilarities, sentences } from "./sentences.ts";

const texts = [...sentences];

const TIMEOUT_MS = 60_000; // A full-size model on a busy CPU.
setDefaultTimeout(TIMEOUT_MS);

let server: Server;
beforeAll(async () => {
  server = await startServer(demoModelFlags);
}, TIMEOUT_MS);
afterAll(() => server?.stop());

async function openaiVectors(model: string): Promise<number[][]> {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0 });
  const { data } = await client.embeddings.create({ model, input: texts });
  return data.map((entry) => entry.embedding);
}

async function teiVectors(inputs: unknown): Promise<number[][]> {
  const response = await server.post("/embed", { inputs });
  return z.array(z.array(z.number())).parse(await okJson(response));
}

describe("the default model", () => {
  test("answers to its short and its full name with the published similarities", async () => {
    const vectors = await openaiVectors("all-MiniLM-L6-v2");
    expectPublishedSimilarities(vectors);
    expect(await openaiVectors("sentence-transformers/all-MiniLM-L6-v2")).toEqual(vectors);
  });

  test("gives the same vectors to OpenAI, llama-server and TEI clients", async () => {
    const vectors = await openaiVectors("all-MiniLM-L6-v2");
    const others = [
      await teiVectors(texts),
      await embedNative(server, { content: texts }, "/embedding"),
      await embedNative(server, { input: texts }, "/embeddings"),
    ];
    for (const other of others) expect(rounded(other)).toEqual(vectors);
    for (const [i, text] of texts.entries())
      expectVectors(await teiVectors(text), [vectors[i] ?? []]);
  });

  test("GET /info tells TEI clients its name and limits", async () => {
    expect(await okJson(await server.get("/info"))).toMatchObject({
      model_id: "all-MiniLM-L6-v2",
      model_type: { embedding: { pooling: "mean" } },
      max_input_length: 256,
    });
  });
});

/** OpenAI's client decodes f32 from base64; printed decimals name the same f32. */
function rounded(vectors: readonly (readonly number[])[]): number[][] {
  return vectors.map((vector) => vector.map(Math.fround));
}
