/** A model with a vector per token: rows on every route, and ranking by MaxSim. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { z } from "zod";
import { CheckpointCopy, fixture } from "../checkpoints.ts";
import { multiVectorReference } from "../fixtures/multi-vector-reference.ts";
import { type Server, startServer } from "../server.ts";
import { badRequest, expectVectors, littleEndianFloats, norm, okJson, unit } from "./answers.ts";
import { expectScores, rank, rankBare, scores, scoresOf } from "./rankings.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

const NAME = "colbert-bert";
const { cases, dim, query_length } = multiVectorReference(NAME);

type Rows = readonly (readonly number[])[];

const rows = z.array(z.array(z.number()));
const envelope = <Entry extends z.ZodRawShape>(entry: Entry) =>
  z.strictObject({
    object: z.literal("list"),
    data: z.array(z.strictObject({ object: z.literal("embedding"), index: z.number(), ...entry })),
    model: z.string(),
    usage: z.strictObject({ prompt_tokens: z.number(), total_tokens: z.number() }),
  });
const base64 = { embedding: z.base64(), shape: z.tuple([z.int(), z.int()]) };

let server: Server;
beforeAll(async () => {
  server = await startServer(["--embedding-model", fixture(NAME), "--rerank"]);
});
afterAll(() => server?.stop());

/** The rows of each item. */
async function embed(body: unknown, on = server) {
  const response = await on.post("/v1/embeddings", body);
  const { data, usage } = envelope({ embedding: rows }).parse(await okJson(response));
  expect(data.map(({ index }) => index)).toEqual([...data.keys()]);
  const truncated = response.headers.get("x-mlxcel-truncated");
  return { items: data.map(({ embedding }) => embedding), tokens: usage.prompt_tokens, truncated };
}

async function embedOne(input: unknown, options = {}): Promise<Rows> {
  const { items } = await embed({ input, ...options });
  expect(items).toHaveLength(1);
  return items[0] ?? [];
}

function floatsInRows({ embedding, shape: [count, width] }: z.output<z.ZodObject<typeof base64>>) {
  const floats = littleEndianFloats(embedding);
  expect(floats).toHaveLength(count * width);
  return Array.from({ length: count }, (_, row) => floats.slice(row * width, (row + 1) * width));
}

/** JSON has the shortest text of each f32, base64 the f32 itself. */
function asFloat32(item: Rows): number[][] {
  return item.map((row) => row.map(Math.fround));
}

/** Averaged over the query's rows. */
function meanMaxSim(query: Rows, document: Rows): number {
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, value, i) => sum + value * (b[i] ?? Number.NaN), 0);
  const best = query.map((own) => Math.max(...document.map((other) => dot(own, other))));
  return best.reduce((sum, value) => sum + value, 0) / query.length;
}

describe("embeddings", () => {
  test("every case alone gives the reference's rows, and its count of tokens", async () => {
    for (const { input, task, embedding, prompt_tokens } of cases) {
      const { items, tokens } = await embed({ input, input_type: task });
      expectVectors(items[0] ?? [], embedding);
      expect(tokens).toBe(prompt_tokens);
    }
  });

  test.each([null, "query", "document"] as const)(
    "the cases of side %p together give the reference's rows",
    async (task) => {
      const own = cases.filter((entry) => entry.task === task);
      const { items, tokens } = await embed({
        input: own.map(({ input }) => input),
        prompt_name: task,
      });
      items.forEach((item, i) => expectVectors(item, own[i]?.embedding ?? []));
      expect(tokens).toBe(own.reduce((sum, { prompt_tokens }) => sum + prompt_tokens, 0));
    },
  );

  test("other vendors' words for the sides choose them too", async () => {
    for (const [word, side] of [
      ["search_query", "query"],
      ["search_document", "document"],
      ["passage", "document"],
    ]) {
      const named = await embedOne("an egg, please", { input_type: word });
      expect(named).toEqual(await embedOne("an egg, please", { input_type: side }));
    }
  });

  test("base64 is the rows one after the other, with their shape", async () => {
    const input = ["How do I boil an egg?", "eggs"];
    const { items } = await embed({ input });
    const body = { input, encoding_format: "base64" };
    const answer = await okJson(await server.post("/v1/embeddings", body));
    const { data } = envelope(base64).parse(answer);
    expect(data.map(({ shape }) => shape)).toEqual(items.map(({ length }) => [length, dim]));
    expect(data.map(floatsInRows)).toEqual(items.map(asFloat32));
  });

  test.each(["/embedding", "/embeddings"])("%s: one inner array per row", async (path) => {
    const content = ["How do I boil an egg?", "eggs"];
    const { items } = await embed({ input: content });
    const entry = z.strictObject({ index: z.int(), embedding: rows });
    const given = z.array(entry).parse(await okJson(await server.post(path, { content })));
    expect(given).toEqual(items.map((embedding, index) => ({ index, embedding })));
    const packed = await okJson(await server.post(path, { content, encoding_format: "base64" }));
    const packedEntry = z.strictObject({ index: z.int(), ...base64 });
    expect(z.array(packedEntry).parse(packed).map(floatsInRows)).toEqual(items.map(asFloat32));
  });

  test("/embed: rows per input", async () => {
    const inputs = ["How do I boil an egg?", "eggs"];
    const { items } = await embed({ input: inputs });
    const given = z.array(rows).parse(await okJson(await server.post("/embed", { inputs })));
    expect(given).toEqual(items);
  });

  test("token ids are used as they are: a row for each, whatever the side", async () => {
    const { token_ids, embedding } = cases[0]!;
    expectVectors(await embedOne(token_ids, { input_type: "document" }), embedding);
    expect(await embedOne([5, 6], { input_type: "query" })).toHaveLength(2);
  });

  test("dimensions and normalisation apply to each row", async () => {
    const whole = await embedOne("eggs");
    const cut = await embedOne("eggs", { dimensions: 5 });
    const wanted = whole.map((row) => unit(row.slice(0, 5)));
    expectVectors(cut, wanted);
    const raw = await embedOne("eggs", { embd_normalize: -1 });
    expect(Math.abs(norm(raw[0] ?? []) - 1)).toBeGreaterThan(1e-3);
    expectVectors(
      raw.map((row) => unit(row)),
      whole,
    );
  });

  test("what is over the limit of its side is cut and counted, or refused by that limit", async () => {
    const input = ["eggs", words(40), words(200)];
    expect(await embed({ input, input_type: "query" })).toMatchObject({ truncated: "2" });
    const asDocuments = await embed({ input, input_type: "document" });
    expect(asDocuments).toMatchObject({ truncated: "1" });
    expect((await embed({ input: "eggs" })).truncated).toBe(null);
    const refusal = await badRequest(server, { input, input_type: "query", truncate: false });
    expect(refusal).toMatchObject({ param: "input[1]" });
    expect(refusal.message).toContain(`maximum context length of ${query_length} tokens`);
  });

  test("many texts of all lengths at once: each as alone", async () => {
    const input = shuffledTexts(60, 90);
    const { items } = await embed({ input, input_type: "document" });
    for (const index of [0, 17, 59]) {
      expectVectors(items[index] ?? [], await embedOne(input[index], { input_type: "document" }));
    }
  });
});

describe("ranking", () => {
  const find = (task: "query" | "document") => cases.filter((entry) => entry.task === task);

  test("scores are the MaxSim of the reference's rows, averaged over the query's, or summed", async () => {
    const documents = find("document");
    const texts = documents.map(({ input }) => input);
    for (const { input, embedding } of find("query")) {
      const wanted = documents.map((document) => meanMaxSim(embedding, document.embedding));
      expectScores(await scores(server, String(input), texts), wanted);
      const sums = wanted.map((mean) => mean * embedding.length);
      const raw = await scores(server, String(input), texts, { raw_scores: true });
      sums.forEach((sum, i) => expect(Math.abs(raw[i]! - sum)).toBeLessThan(1e-5 * sum));
    }
  });

  test("the bare form has the same scores, and usage counts the query once", async () => {
    const documents = ["eggs, boiled", "the old fox"];
    const answer = await rank(server, { query: "an egg", documents });
    expect(await rankBare(server, { query: "an egg", texts: documents })).toEqual(answer.ranks);
    const asked = await embed({ input: "an egg", input_type: "query" });
    const read = await embed({ input: documents, input_type: "document" });
    expect(answer.tokens).toBe(asked.tokens + read.tokens);
  });

  test("a thousand documents in one request", async () => {
    const documents = shuffledTexts(1000, 90);
    const { ranks, tokens } = await rank(server, { query: "the old fox", documents });
    expect(ranks).toHaveLength(1000);
    const read = await embed({ input: documents, input_type: "document" });
    const asked = await embed({ input: "the old fox", input_type: "query" });
    expect(tokens).toBe(asked.tokens + read.tokens);
    const wanted = read.items.map((document) => meanMaxSim(asked.items[0] ?? [], document));
    expectScores(scoresOf(ranks), wanted);
  });

  test("what the server does to vectors that it answers with does not change scores", async () => {
    await using raw = await startServer([
      ...["--embedding-model", fixture(NAME), "--rerank", "--embd-normalize", "0"],
    ]);
    const documents = ["eggs, boiled", "the old fox"];
    const given = await scores(raw, "an egg", documents);
    expect(given).toEqual(await scores(server, "an egg", documents));
  });

  test("an over-long query or document is named by its own field", async () => {
    const body = { truncate: false, documents: ["eggs", words(200)] };
    const document = await badRequest(server, { ...body, query: "q" }, "/v1/rerank");
    expect(document.param).toBe("documents[1]");
    const query = await badRequest(server, { ...body, query: words(40) }, "/v1/rerank");
    expect(query.param).toBe("query");
  });
});

test("it says of itself that it has a vector per token, and how it ranks", async () => {
  const Model = z.looseObject({ id: z.string(), kind: z.string() });
  const kinds = [
    { id: NAME, kind: "embedding" },
    { id: NAME, kind: "late_interaction" },
  ];
  const list = z.object({ data: z.array(Model) });
  expect(list.parse(await okJson(await server.get("/v1/models"))).data).toMatchObject(kinds);
  const props = z.object({ models: z.array(Model) });
  const facts = { multi_vector: true, pooling: "none", normalization: "l2", dim };
  expect(props.parse(await okJson(await server.get("/props"))).models).toMatchObject(
    kinds.map((entry) => ({ ...entry, ...facts })),
  );
  expect(server.stdout()).toMatch(/ranking .*late interaction/);
  expect(server.stdout()).toMatch(/pooling .*a vector per token/);
});

test("a document whose tokens are all skipped has no rows, and ranks below every other", async () => {
  const skiplist_words = ["!", "[CLS]", "[D]", "[SEP]"];
  const copy = new CheckpointCopy(NAME).set("config_sentence_transformers.json", {
    skiplist_words,
  });
  await using own = await startServer(["--embedding-model", copy.directory, "--rerank"]);
  const documents = ["!!", "eggs", "!"];
  const { items } = await embed({ input: ["!", "eggs"], input_type: "document" }, own);
  expect(items.map(({ length }) => length)).toEqual([0, 3]);
  const { items: alone } = await embed({ input: "!", input_type: "document" }, own);
  expect(alone).toEqual([[]]);
  const { ranks } = await rank(own, { query: "an egg", documents, raw_scores: true });
  expect(ranks.map(({ index }) => index)).toEqual([1, 0, 2]);
  expect(ranks.slice(1).map(({ score }) => score)).toEqual([-1e9, -1e9]);
  expect((await embed({ input: "ok" }, own)).items).toHaveLength(1);
});
