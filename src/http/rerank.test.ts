import { describe, expect, test } from "bun:test";
import { RERANKER_INFO } from "../dialects/testing/context.ts";
import { RankingEmbedder } from "../serving/ranking-embedder.ts";
import { Failure } from "../worker/failure.ts";
import { textsOf } from "../worker/items.ts";
import { errorOf, rankedOf, ranksOf } from "./testing/answers.ts";
import { DeterministicProvider, expectedScore } from "./testing/deterministic-provider.ts";
import { TestServer } from "./testing/test-server.ts";

const PATHS = ["/v1/rerank", "/v1/reranking", "/rerank", "/reranking", "/v2/rerank"];

/** What the deterministic reranker answers, best first. */
function expectedOrder(query: string, documents: readonly string[]) {
  return documents
    .map((text, index) => ({ index, score: expectedScore(query, text) }))
    .sort((a, b) => b.score - a.score || a.index - b.index);
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `document number ${i % 977} ${"pad ".repeat(4)}`);
}

test("both shapes on every path", async () => {
  await using server = await TestServer.start();
  const documents = ["x", "y", "x", "z", "x"];
  const order = expectedOrder("q", documents);
  for (const path of PATHS) {
    const response = await server.post(path, { query: "q", documents });
    expect(response.status).toBe(200);
    expect(await rankedOf(response)).toEqual({
      model: "judge",
      object: "list",
      results: order.map(({ index, score }) => ({ index, relevance_score: score })),
      usage: { prompt_tokens: 25, total_tokens: 25 },
    });
    expect(await ranksOf(await server.post(path, { query: "q", texts: documents }))).toEqual(order);
  }
});

test("--rerank-scores sets the default, the request beats it", async () => {
  await using server = await TestServer.start({ rawScores: true });
  const body = { query: "q", texts: ["x"] };
  const score = expectedScore("q", "x");
  const [raw] = await ranksOf(await server.post("/rerank", body));
  expect(raw?.score).toBe(Math.fround(10 * score));
  const [sigmoid] = await ranksOf(await server.post("/rerank", { ...body, raw_scores: false }));
  expect(sigmoid?.score).toBe(score);
});

test("pairs that were cut are counted in the header; truncate:false refuses the first of them", async () => {
  await using server = await TestServer.start();
  const body = { query: "q", documents: ["short", "word ".repeat(40), "word ".repeat(50)] };
  const cut = await server.post("/v1/rerank", body);
  expect(cut.headers.get("x-mlxcel-truncated")).toBe("2");
  const refused = await server.post("/v1/rerank", { ...body, truncate: false });
  expect(refused.status).toBe(400);
  expect((await errorOf(refused)).param).toBe("documents[1]");
});

test("a wrong request is 400 and never reaches the model", async () => {
  await using server = await TestServer.start();
  const cases: [object, string][] = [
    [{ query: "q" }, "documents"],
    [{ query: "q", documents: [] }, "documents"],
    [{ documents: ["a"] }, "query"],
    [{ query: "q", documents: ["a", " "] }, "documents[1]"],
    [{ query: "q", documents: ["a"], top_n: 0 }, "top_n"],
    [{ query: "q", documents: ["a"], instruction: "Judge" }, "instruction"],
    [{ query: "q", documents: ["a", { image: "http://nowhere.invalid/x.png" }] }, "documents[1]"],
    [{ query: "q", documents: ["a"], model: "tiny" }, "model"],
  ];
  for (const [body, param] of cases) {
    const response = await server.post("/v1/rerank", body);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ type: "invalid_request_error", param });
  }
  expect(server.ranker.jobs).toEqual([]);
  expect((await server.post("/v1/rerank", { query: "q", documents: ["a"] })).status).toBe(200);
});

test("a score that is not finite is 500, and the next request is served", async () => {
  const ranker = new DeterministicProvider(RERANKER_INFO);
  await using server = await TestServer.start({ providers: { ranker } });
  ranker.brokenScore = NaN;
  const body = { query: "q", documents: ["a", "b"] };
  const response = await server.post("/v1/rerank", body);
  expect(response.status).toBe(500);
  expect((await errorOf(response)).type).toBe("server_error");
  ranker.brokenScore = undefined;
  expect((await server.post("/v1/rerank", body)).status).toBe(200);
});

test("ten thousand documents with their echo go through the codec worker", async () => {
  await using server = await TestServer.start();
  const texts = numbered(10_000);
  const documents = texts.map((text, id) => ({ id, text, tags: ["grün", "\ud83d"] }));
  const response = await server.post("/v1/rerank", {
    query: "q",
    documents,
    return_documents: true,
  });
  expect(response.status).toBe(200);
  const { results } = await rankedOf(response);
  expect(results.map(({ index, relevance_score: score }) => ({ index, score }))).toEqual(
    expectedOrder("q", texts),
  );
  for (const { index, document } of results) expect(document).toEqual(documents[index]);
  const [job] = server.ranker.jobs;
  expect(job?.kind === "rerank" && "offsets" in job.items && textsOf(job.items)).toEqual(texts);
});

test("a big request may have a small answer", async () => {
  await using server = await TestServer.start();
  const texts = numbered(10_000);
  const body = { query: "q", texts, top_n: 2, return_text: true };
  expect(await ranksOf(await server.post("/rerank", body))).toEqual(
    expectedOrder("q", texts)
      .slice(0, 2)
      .map((entry) => ({ ...entry, text: texts[entry.index] })),
  );
});

describe("which model answers", () => {
  test("an embedder that ranks is listed once more under its ranking kind", async () => {
    const embedder = new DeterministicProvider();
    const providers = { embedder, ranker: new RankingEmbedder(embedder) };
    await using server = await TestServer.start({ providers, metrics: true });
    const kinds = [
      { id: "tiny", kind: "embedding" },
      { id: "tiny", kind: "bi_encoder" },
    ];
    expect(await (await server.request("/v1/models")).json()).toMatchObject({ data: kinds });
    expect(await (await server.request("/props")).json()).toMatchObject({ models: kinds });
    const body = { model: "tiny", query: "q", documents: ["a"], instruction: "Find" };
    expect((await server.post("/v1/rerank", body)).status).toBe(200);
    expect(embedder.jobs).toMatchObject([{ kind: "rerank", instruction: "Find" }]);
    expect((await server.post("/v1/embeddings", { input: "a" })).status).toBe(200);
    const metrics = await (await server.request("/metrics")).text();
    expect(metrics.match(/mlxcel_model_ready\{/g)).toHaveLength(1);
  });

  test("a server that only ranks answers 501 to embeddings, and describes the reranker", async () => {
    const ranker = new DeterministicProvider(RERANKER_INFO);
    await using server = await TestServer.start({ providers: { ranker } });
    for (const path of ["/v1/embeddings", "/embedding", "/embeddings", "/embed"]) {
      const response = await server.post(path, { input: "a", inputs: "a" });
      expect(response.status).toBe(501);
      expect((await errorOf(response)).message).toContain("--embedding-model");
    }
    expect(await (await server.request("/info")).json()).toMatchObject({
      model_id: "judge",
      model_type: { reranker: { id2label: { "0": "LABEL_0" } } },
    });
    const tokens = await server.post("/tokenize", { content: "a bb" });
    expect(await tokens.json()).toEqual({ tokens: [1, 2] });
  });

  test("the tokenizer routes serve the embedder, or the model that the request names", async () => {
    await using server = await TestServer.start();
    const post = (body: object) => server.post("/tokenize", { content: "a bb", ...body });
    expect((await post({})).status).toBe(200);
    expect((await post({ model: "tiny" })).status).toBe(200);
    expect(server.ranker.jobs).toEqual([]);
    expect((await post({ model: "acme/judge" })).status).toBe(200);
    expect(server.ranker.jobs).toMatchObject([{ kind: "tokenize", text: "a bb" }]);
    // the vocabulary of the model that is named counts
    const detokenize = (model: string) => server.post("/detokenize", { model, tokens: [700] });
    expect((await detokenize("tiny")).status).toBe(200);
    expect((await errorOf(await detokenize("judge"))).param).toBe("tokens[0]");
    const unknown = await post({ model: "other" });
    expect(unknown.status).toBe(400);
    expect((await errorOf(unknown)).message).toContain('"tiny" or "judge"');
    // also when the codec worker parses
    expect((await post({ model: "judge", content: "w ".repeat(50_000) })).status).toBe(200);
    expect(server.ranker.jobs).toHaveLength(2);
  });

  test("a reranker that loads, fails or is busy leaves the embedder alone", async () => {
    await using server = await TestServer.start();
    const rerank = () => server.post("/v1/rerank", { query: "q", documents: ["a"] });
    const embed = () => server.post("/v1/embeddings", { input: "a" });
    for (const [state, status] of [
      ["loading", 503],
      ["failed", 500],
    ] as const) {
      server.ranker.state = state;
      expect((await rerank()).status).toBe(status);
      expect((await server.request("/health")).status).toBe(503);
      expect((await embed()).status).toBe(200);
      expect((await server.post("/tokenize", { content: "a" })).status).toBe(200);
    }
    server.ranker.state = "ready";
    server.ranker.failure = new Failure("busy", "full");
    expect((await rerank()).status).toBe(503);
    expect((await embed()).status).toBe(200);
  });
});
