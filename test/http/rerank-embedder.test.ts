import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { CheckpointCopy, expected, fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { badRequest, embed, expectDifferent, expectVector, okJson, refusalOf } from "./answers.ts";
import { expectScores, rank, rankBare, RERANK_PATHS, scores, scoresOf } from "./rankings.ts";
import { words } from "./texts.ts";

setDefaultTimeout(60_000);

const QUERY = "how long should an egg boil";
const DOCUMENTS = ["Boil a large egg for six minutes.", "the old fox", "eggs", words(30)];

/** The same cosines by way of `/v1/embeddings`, whose vectors may be of any length. */
async function cosines(
  server: Server,
  query: string,
  documents: readonly string[],
  queryOptions: Record<string, unknown> = { input_type: "query" },
): Promise<number[]> {
  const asked = await embed(server, { input: query, ...queryOptions });
  const { vectors } = await embed(server, { input: documents, input_type: "document" });
  return vectors.map((vector) => cosine(asked.vectors[0] ?? [], vector));
}

function cosine(a: readonly number[], b: readonly number[]): number {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] ?? Number.NaN), 0);
}

describe("an embedder that declares prompts for queries and documents", () => {
  const prompts = { query: "search query: ", document: "search document: " };
  const copy = new CheckpointCopy("bert-mean").set("config_sentence_transformers.json", {
    prompts,
    default_prompt_name: "document",
  });
  let server: Server;
  beforeAll(async () => {
    server = await startServer(["--embedding-model", copy.directory, "--rerank"]);
  });
  afterAll(() => server?.stop());

  test.each(RERANK_PATHS)("%s: scores are the cosines of both with their prompts", async (path) => {
    const wanted = await cosines(server, QUERY, DOCUMENTS);
    const answer = await rank(server, { query: QUERY, documents: DOCUMENTS }, path);
    expectScores(scoresOf(answer.ranks), wanted);
    const bare = await rankBare(server, { query: QUERY, texts: DOCUMENTS }, path);
    expect(bare).toEqual(answer.ranks);
  });

  test("so the query is not read as a document is", async () => {
    const unprompted = await cosines(server, QUERY, DOCUMENTS, { input_type: "document" });
    expectDifferent(await scores(server, QUERY, DOCUMENTS), unprompted);
    // Read alike, equal texts would score 1.
    const [same = Number.NaN] = await scores(server, QUERY, [QUERY]);
    expect(same).toBeLessThan(1 - 1e-3);
  });

  test("raw scores are the cosine, too: one-vector models have nothing rawer", async () => {
    const raw = await scores(server, QUERY, DOCUMENTS, { raw_scores: true });
    expect(raw).toEqual(await scores(server, QUERY, DOCUMENTS));
  });

  test("usage counts the query once, and each document", async () => {
    const asked = await embed(server, { input: QUERY, input_type: "query" });
    const read = await embed(server, { input: DOCUMENTS, input_type: "document" });
    const { tokens } = await rank(server, { query: QUERY, documents: DOCUMENTS });
    expect(tokens).toBe(asked.tokens + read.tokens);
  });

  test("an instruction is fine where the family has no format for one: it changes nothing", async () => {
    const instructed = await scores(server, QUERY, DOCUMENTS, { instruction: "Find recipes" });
    expect(instructed).toEqual(await scores(server, QUERY, DOCUMENTS));
  });

  test("requests that change embeddings do not change the ranking", async () => {
    const before = await scores(server, QUERY, DOCUMENTS);
    await embed(server, { input: QUERY, embd_normalize: -1, dimensions: 3 });
    expect(await scores(server, QUERY, DOCUMENTS)).toEqual(before);
  });

  test("over-long texts are cut and counted, or refused by name", async () => {
    const over = words(200);
    const answer = await rank(server, { query: over, documents: ["eggs", over, over] });
    expect(answer.truncated).toBe("3");
    const strict = { truncate: false, documents: ["eggs", "fox"] };
    const asQuery = await badRequest(server, { ...strict, query: over }, "/v1/rerank");
    expect(asQuery.param).toBe("query");
    const asDocument = { ...strict, query: "q", documents: ["eggs", over] };
    const refusal = await badRequest(server, asDocument, "/v1/rerank");
    expect(refusal.param).toBe("documents[1]");
    expect(refusal.message).toMatch(/too large.*exceeds maximum context length/);
  });
});

describe("an embedder without prompts", () => {
  test.each([[[]], [["--embd-normalize", "-1"]], [["--embd-normalize", "0"]]])(
    "%j: equal texts score 1, everything else its cosine",
    async (flags) => {
      await using server = await startServer([
        ...["--embedding-model", fixture("modernbert-mean"), "--rerank"],
        ...flags,
      ]);
      const documents = [...DOCUMENTS, QUERY];
      const given = await scores(server, QUERY, documents);
      expectScores(given, await cosines(server, QUERY, documents));
      expectScores(given.slice(-1), [1]);
    },
  );
});

describe("an embedder with an instruction format", () => {
  const name = "qwen3-embed";
  let server: Server;
  beforeAll(async () => {
    server = await startServer(["--embedding-model", fixture(name), "--rerank"]);
  });
  afterAll(() => server?.stop());

  test("reads the query with the checkpoint's prompt, as the reference does", async () => {
    const find = (wanted: string) => {
      const found = expected(name).cases.find((entry) => entry.name === wanted);
      return { text: String(found?.input), vector: found?.embedding ?? [] };
    };
    const asked = find("prompted_query");
    const documents = ["prompted", "short", "medium", "german"].map(find);
    const given = await scores(
      server,
      asked.text,
      documents.map(({ text }) => text),
    );
    expectScores(
      given,
      documents.map(({ vector }) => cosine(asked.vector, vector)),
    );
  });

  test("formats the query with an instruction, and the query only", async () => {
    const instruction = "Retrieve cooking advice";
    const instructed = await scores(server, QUERY, DOCUMENTS, { instruction });
    expectScores(instructed, await cosines(server, QUERY, DOCUMENTS, { instruction }));
    expectDifferent(instructed, await scores(server, QUERY, DOCUMENTS));
    const blank = await scores(server, QUERY, DOCUMENTS, { instruction: " \n" });
    expect(blank).toEqual(await scores(server, QUERY, DOCUMENTS));
  });
});

describe("what it says of itself", () => {
  const Models = z.array(z.looseObject({ id: z.string(), kind: z.string() }));
  let server: Server;
  beforeAll(async () => {
    const model = ["--embedding-model", fixture("bert-mean")];
    server = await startServer([...model, "--rerank", "--alias", "mini", "--metrics"]);
  });
  afterAll(() => server?.stop());

  test("it is listed under both kinds in /v1/models and /props", async () => {
    const kinds = [
      { id: "bert-mean", kind: "embedding" },
      { id: "bert-mean", kind: "bi_encoder" },
    ];
    const list = z.object({ data: Models }).parse(await okJson(await server.get("/v1/models")));
    expect(list.data).toMatchObject(kinds);
    const props = z.object({ models: Models }).parse(await okJson(await server.get("/props")));
    expect(props.models).toMatchObject(kinds);
  });

  test("the start-up lines say that it ranks, and how", () => {
    expect(server.stdout()).toMatch(/ranking .*embedder.*cosine/);
    expect(server.stdout()).toContain("/v1/rerank");
  });

  test("its names work on both routes, and only chat is missing", async () => {
    for (const model of ["bert-mean", "mini", fixture("bert-mean")]) {
      const answer = await rank(server, { model, query: "q", documents: ["a"] });
      expect(answer.model).toBe("bert-mean");
      expect((await embed(server, { model, input: "a" })).model).toBe("bert-mean");
    }
    const chat = await refusalOf(await server.post("/v1/chat/completions", {}));
    expect(chat).toMatchObject({ status: 501, type: "not_implemented" });
  });

  test("embeddings are those of a server that does not rank", async () => {
    const [medium] = expected("bert-mean").cases.filter((entry) => entry.name === "medium");
    const { vectors } = await embed(server, { input: medium?.input });
    expectVector(vectors[0] ?? [], medium?.embedding ?? []);
  });

  test("it is one model with one queue in the metrics", async () => {
    const metrics = await (await server.get("/metrics")).text();
    expect(metrics.match(/^mlxcel_model_ready\{/gm)).toHaveLength(1);
  });
});
