import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { badRequest, embed, okJson } from "./answers.ts";

setDefaultTimeout(60_000);

let server: Server;
beforeAll(async () => {
  const models = [
    "--embedding-model",
    fixture("bert-mean"),
    "--reranker-model",
    fixture("rerank-bert"),
  ];
  const limits = ["--max-inputs", "3", "--max-tokens-per-request", "20", "--batch-tokens", "64"];
  server = await startServer([...models, ...limits]);
});
afterAll(() => server?.stop());

test("--max-inputs refuses a request with more items, on every route and in every shape", async () => {
  const four = ["a", "b", "c", "d"];
  const bodies: readonly (readonly [string, object, string])[] = [
    ["/v1/embeddings", { input: four }, "input"],
    ["/v1/embeddings", { input: [[2], [2], [2], [2]] }, "input"],
    ["/embedding", { content: four }, "content"],
    ["/embed", { inputs: four }, "inputs"],
    ["/v1/rerank", { query: "q", documents: four }, "documents"],
    ["/rerank", { query: "q", texts: four }, "texts"],
  ];
  for (const [path, body, field] of bodies) {
    const { param, message } = await badRequest(server, body, path);
    expect(param).toBe(field);
    expect(message).toBe(
      `${field} has 4 items: this server takes at most 3 per request (--max-inputs)`,
    );
  }
  expect((await embed(server, { input: four.slice(1) })).vectors).toHaveLength(3);
});

test("--max-tokens-per-request names the item that takes the request over it", async () => {
  const words = (count: number) => Array(count).fill("the").join(" ");
  // two special tokens around each text
  const fits = await embed(server, { input: [words(8), words(8)] });
  expect(fits.tokens).toBe(20);
  const over = await badRequest(server, { input: [words(8), words(8), "the"] });
  expect(over.param).toBe("input[2]");
  expect(over.message).toContain("over 20 tokens");
  expect(over.message).toContain("--max-tokens-per-request");
  expect((await badRequest(server, { content: words(19) }, "/embedding")).param).toBe("content");
  const ranked = { query: words(4), documents: [words(4), words(4)] };
  expect((await badRequest(server, ranked, "/v1/rerank")).param).toBe("documents[1]");
});

test("/props tells the limits that were set, for every model, and the start tells that of batches", async () => {
  const limits = { max_inputs: 3, max_tokens_per_request: 20, batch_tokens: 64 };
  const props: unknown = await okJson(await server.get("/props"));
  expect(props).toMatchObject({ models: [{ limits }, { limits }] });
  expect(server.stdout().match(/^ +batch +up to 64 tokens;/gm)).toHaveLength(2);
});

test("without the flags there is no such limit", async () => {
  await using unlimited = await startServer(["--embedding-model", fixture("bert-mean")]);
  const limits = { max_inputs: null, max_tokens_per_request: null };
  expect(await okJson(await unlimited.get("/props"))).toMatchObject({ models: [{ limits }] });
  const input = Array(3000).fill("some more words than the other server takes");
  expect((await embed(unlimited, { input })).vectors).toHaveLength(3000);
});
