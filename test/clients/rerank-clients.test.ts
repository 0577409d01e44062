import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { fixture } from "../checkpoints.ts";
import { expectLogits, expectScores, referencePairs } from "../http/rankings.ts";
import { type Server, startServer } from "../server.ts";
import { Failure, PYTHON_TIMEOUT_MS, runPython } from "./python.ts";

const MODEL = "rerank-xlm-roberta";
const KEY = "secret";
const QUERY = "how long should an egg boil";
const pairs = referencePairs(MODEL).filter(({ query }) => query === QUERY);

type Ranks = readonly (readonly [index: number, score: number])[];
const Ranks = z.array(z.tuple([z.number(), z.number()]));
const Bare = z.array(z.strictObject({ index: z.number(), score: z.number() }));
const JinaAnswer = z.strictObject({
  model: z.literal(MODEL),
  object: z.literal("list"),
  results: z.array(
    z.strictObject({
      index: z.number(),
      relevance_score: z.number(),
      document: z.string().optional(),
    }),
  ),
  usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
});
const Answers = z.strictObject({
  cohere_v1: z.strictObject({
    ranks: Ranks,
    top: Ranks,
    echo: z.array(z.tuple([z.number(), z.string()])),
    unknown_model: Failure,
    wrong_key: Failure,
  }),
  cohere_v2: z.strictObject({
    ranks: Ranks,
    top: Ranks,
    empty_document: Failure,
    wrong_key: Failure,
  }),
  langchain: z.strictObject({ ranks: Ranks, top: Ranks, unknown_model: Failure }),
  llama_index: z.strictObject({
    ranks: Ranks,
    top: Ranks,
    bare_token: Ranks,
    by_token_function: Ranks,
    empty_text: Failure,
    wrong_token: Failure,
  }),
  haystack: z.strictObject({
    ranks: Bare,
    truncated: Bare,
    raw: Bare,
    raised: Failure,
    refused: z.unknown(),
  }),
  jina: z.strictObject({
    ranks: JinaAnswer,
    echo: JinaAnswer,
    raised: Failure,
    refused: z.unknown(),
  }),
});

/** The reference's ranking: index and score, best first. */
const wanted: Ranks = pairs
  .map(({ score }, index) => [index, score] as const)
  .toSorted(([, a], [, b]) => b - a);

/** Order and scores are the reference's. */
function expectRanking(ranks: Ranks, reference: Ranks = wanted): void {
  expect(ranks.map(([index]) => index)).toEqual(reference.map(([index]) => index));
  expectScores(
    ranks.map(([, score]) => score),
    reference.map(([, score]) => score),
  );
}

const bareRanks = (entries: z.infer<typeof Bare>): Ranks =>
  entries.map(({ index, score }) => [index, score]);

let server: Server;
let answers: z.infer<typeof Answers>;
beforeAll(async () => {
  server = await startServer(["-m", fixture(MODEL), "--api-key", KEY]);
  const documents = pairs.map(({ document }) => document);
  const asked = { url: server.url, key: KEY, model: MODEL, query: QUERY, documents };
  answers = Answers.parse(await runPython("rerank_clients.py", asked));
}, PYTHON_TIMEOUT_MS);
afterAll(() => server?.stop());

test("the reference's ranking is not the order of the request", () => {
  expect(wanted.map(([index]) => index)).toEqual([1, 0]);
});

describe("cohere's Client", () => {
  test("ranks, and keeps the best", () => {
    expectRanking(answers.cohere_v1.ranks);
    expectRanking(answers.cohere_v1.top, wanted.slice(0, 1));
  });

  test("return_documents gives the documents back as its own type", () => {
    expect(answers.cohere_v1.echo).toEqual(
      wanted.map(([index]) => [index, pairs[index]?.document ?? ""]),
    );
  });

  test("refusals are its own exceptions, with our message", () => {
    const { unknown_model, wrong_key } = answers.cohere_v1;
    expect(unknown_model).toMatchObject({ kind: "BadRequestError", status: 400 });
    expect(unknown_model.message).toContain('model "rerank-v3.5" does not answer here');
    expect(wrong_key).toMatchObject({ kind: "UnauthorizedError", status: 401 });
    expect(wrong_key.message).toContain("API key");
  });
});

describe("cohere's ClientV2", () => {
  test("ranks, and keeps the best", () => {
    expectRanking(answers.cohere_v2.ranks);
    expectRanking(answers.cohere_v2.top, wanted.slice(0, 1));
  });

  test("refusals are its own exceptions, with our message", () => {
    const { empty_document, wrong_key } = answers.cohere_v2;
    expect(empty_document).toMatchObject({ kind: "BadRequestError", status: 400 });
    expect(empty_document.message).toContain("documents[1] has no text");
    expect(wrong_key).toMatchObject({ kind: "UnauthorizedError", status: 401 });
  });
});

describe("LangChain's CohereRerank", () => {
  test("compress_documents ranks, and keeps the best", () => {
    expectRanking(answers.langchain.ranks);
    expectRanking(answers.langchain.top, wanted.slice(0, 1));
  });

  test("a refusal is the exception of cohere, with our message", () => {
    const { unknown_model } = answers.langchain;
    expect(unknown_model).toMatchObject({ kind: "BadRequestError", status: 400 });
    expect(unknown_model.message).toContain("does not answer here");
  });
});

describe("LlamaIndex's TextEmbeddingInference reranker", () => {
  test("ranks nodes, and keeps the best", () => {
    expectRanking(answers.llama_index.ranks);
    expectRanking(answers.llama_index.top, wanted.slice(0, 1));
  });

  test("sends its token as the whole header: with or without Bearer", () => {
    expectRanking(answers.llama_index.bare_token);
    expectRanking(answers.llama_index.by_token_function);
  });

  // This client never looks at the status: it stumbles over an answer that is no list.
  test("a refusal ends in an exception, never in a ranking", () => {
    expect(answers.llama_index.empty_text.kind).toBe("AssertionError");
    expect(answers.llama_index.wrong_token.kind).toBe("AssertionError");
  });
});

describe("the requests of haystack's HuggingFaceTEIRanker", () => {
  test("texts come back as a bare list, best first", () => {
    expectRanking(bareRanks(answers.haystack.ranks));
    expectRanking(bareRanks(answers.haystack.truncated));
  });

  test("raw_scores gives logits", () => {
    const best = wanted.map(([index]) => pairs[index]?.logit ?? Number.NaN);
    expectLogits(
      answers.haystack.raw.map(({ score }) => score),
      best,
    );
  });

  test("a refusal is an HTTP error whose body says why", () => {
    expect(answers.haystack.raised).toMatchObject({ kind: "HTTPStatusError" });
    expect(answers.haystack.refused).toMatchObject({
      error: { type: "invalid_request_error", param: "query" },
    });
  });
});

describe("requests in Jina's form", () => {
  test("ranks, with usage", () => {
    const { results, usage } = answers.jina.ranks;
    expectRanking(results.map(({ index, relevance_score }) => [index, relevance_score]));
    expect(usage.total_tokens).toBe(pairs.reduce((sum, { tokens }) => sum + tokens, 0));
  });

  test("return_documents and top_n", () => {
    const { results } = answers.jina.echo;
    expect(results).toHaveLength(1);
    expect(results[0]?.document).toBe(pairs[wanted[0]?.[0] ?? 0]?.document);
  });

  test("a refusal is an HTTP error whose body names the field", () => {
    expect(answers.jina.raised.message).toContain("400");
    expect(answers.jina.refused).toMatchObject({
      error: {
        type: "invalid_request_error",
        param: "top_n",
        message: expect.stringContaining("top_n"),
      },
    });
  });
});

test("the server goes on after all of them", async () => {
  const body = { query: "ok", texts: ["ok"] };
  const response = await server.post("/rerank", body, { authorization: `Bearer ${KEY}` });
  expect(response.status).toBe(200);
});
