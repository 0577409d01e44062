import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { fixture } from "../checkpoints.ts";
import { type Server, startServer } from "../server.ts";
import { badRequest, refusalOf } from "./answers.ts";
import {
  expectLogits,
  expectRanks,
  expectScores,
  pairLimit,
  rank,
  rankBare,
  RERANK_PATHS,
  type ReferencePair,
  referencePair,
  scores,
  scoresOf,
} from "./rankings.ts";
import { words } from "./texts.ts";

setDefaultTimeout(60_000);

const MODEL = "rerank-bert";
const relevant = referencePair(MODEL, "relevant");
const irrelevant = referencePair(MODEL, "irrelevant");
const longDocument = referencePair(MODEL, "long_doc");
const { query } = relevant;
const documents = [relevant.document, irrelevant.document, "a fox"];
const wanted = [relevant.score, irrelevant.score];
const ids = (ranks: readonly { index: number }[]) => ranks.map(({ index }) => index);

let server: Server;
beforeAll(async () => {
  server = await startServer(["-m", fixture(MODEL), "--alias", "judge"]);
});
afterAll(() => server?.stop());

describe("both shapes", () => {
  test.each(RERANK_PATHS)("%s: documents give the envelope, texts the bare list", async (path) => {
    const pair = documents.slice(0, 2);
    const answer = await rank(server, { query, documents: pair }, path);
    expectScores(scoresOf(answer.ranks), wanted);
    expect(answer).toMatchObject({
      model: MODEL,
      tokens: relevant.tokens + irrelevant.tokens,
      truncated: null,
    });
    const bare = await rankBare(server, { query, texts: pair }, path);
    expect(bare).toEqual(answer.ranks);
    const both = await rank(server, { query, documents: pair, texts: ["other"] }, path);
    expect(both.ranks).toEqual(answer.ranks);
  });

  test("raw scores are the reference's logits, in both", async () => {
    const raw = { query, raw_scores: true };
    const logits = [relevant.logit, irrelevant.logit];
    const pair = documents.slice(0, 2);
    expectLogits(scoresOf((await rank(server, { ...raw, documents: pair })).ranks), logits);
    expectLogits(scoresOf(await rankBare(server, { ...raw, texts: pair })), logits);
  });

  test("null and unknown fields count as absent", async () => {
    const fields = {
      ...{ model: null, texts: null, top_n: null, return_documents: null, return_text: null },
      ...{ raw_scores: null, instruction: null, truncate: null, user: null },
      ...{ max_tokens_per_doc: 4096, rank_fields: ["text"], truncation_direction: "Right" },
    };
    const plain = await rank(server, { query, documents });
    expect(await rank(server, { query, documents, ...fields })).toEqual(plain);
    expect(await rank(server, { query, documents, instruction: " \n" })).toEqual(plain);
  });

  test("query and items are strings or objects with text, mixed", async () => {
    const plain = await scores(server, query, documents);
    const objects = [
      documents[0],
      { text: documents[1], id: 7 },
      { text: documents[2], image: null },
    ];
    const { ranks } = await rank(server, { query: { text: query }, documents: objects });
    expect(scoresOf(ranks)).toEqual(plain);
    const bare = await rankBare(server, { query: { text: query }, texts: objects });
    expect(scoresOf(bare)).toEqual(plain);
  });

  test("the model goes by its id, its path and its alias, and answers by its id", async () => {
    for (const model of [MODEL, fixture(MODEL), "judge"]) {
      expect((await rank(server, { model, query, documents })).model).toBe(MODEL);
    }
    for (const model of ["", "gpt-4o", "rerank-english-v3.0"]) {
      const refusal = await badRequest(server, { model, query, documents }, "/v2/rerank");
      expect(refusal).toMatchObject({ code: "model_not_found", param: "model" });
    }
  });
});

describe("the order", () => {
  test.each([
    [1, 1],
    [2, 2],
    [3, 3],
    [10, 3],
    [1e300, 3],
    [null, 3],
    [undefined, 3],
  ])("top_n %p leaves the %d best", async (top_n, count) => {
    const { ranks, tokens } = await rank(server, { query, documents });
    const best = await rank(server, { query, documents, top_n });
    expect(best.ranks).toEqual(ranks.slice(0, count));
    expect(best.tokens).toBe(tokens);
    expect(await rankBare(server, { query, texts: documents, top_n })).toEqual(best.ranks);
  });

  test("equal documents keep their places, score the same and each count their tokens", async () => {
    const repeated = ["x", "y", "x", "x"];
    const answer = await rank(server, { query: "q", documents: repeated });
    expect(ids(answer.ranks).toSorted()).toEqual([0, 1, 2, 3]);
    const twins = answer.ranks.filter(({ index }) => index !== 1);
    expect(ids(twins)).toEqual([0, 2, 3]);
    expect(new Set(twins.map(({ score }) => score)).size).toBe(1);
    const bare = await rankBare(server, { query: "q", texts: repeated });
    expect(bare).toEqual(answer.ranks);
    const single = await rank(server, { query: "q", documents: ["x"] });
    const other = await rank(server, { query: "q", documents: ["y"] });
    expect(answer.tokens).toBe(3 * single.tokens + other.tokens);
  });

  test("a hundred equal documents are ties in ascending order, over batches", async () => {
    const { ranks } = await rank(server, { query: "q", documents: Array(100).fill("x") });
    const spread = (ranks[0]?.score ?? Number.NaN) - (ranks.at(-1)?.score ?? Number.NaN);
    expect(spread).toBe(0);
    expect(ids(ranks)).toEqual(ranks.map((_, i) => i));
  });
});

describe("the echo", () => {
  const items = [
    { text: "grün 😀", id: 7, nested: { list: [1, null, "\ud83d"], empty: {} } },
    'quotes " and \\ and \n',
    { meta: null, text: "last", image: null },
  ];

  test("is the item as it was sent, with all its keys, by either flag", async () => {
    for (const flag of ["return_documents", "return_text"]) {
      const { ranks } = await rank(server, { query, documents: items, [flag]: true });
      expect(ranks).toHaveLength(items.length);
      for (const { index, echo } of ranks) expect(echo).toEqual(items[index]);
    }
    const texts = await rankBare(server, { query, texts: items, return_text: true, top_n: 2 });
    for (const { index, echo } of texts) expect(echo).toEqual(items[index]);
    expect(texts).toHaveLength(2);
  });

  test("is absent, not null, unless it is asked for", async () => {
    for (const asked of [{}, { return_documents: false, return_text: false }]) {
      const { ranks } = await rank(server, { query, documents, ...asked });
      for (const entry of ranks) expect(entry).not.toContainKey("echo");
    }
    const bare = await rankBare(server, { query, texts: documents, return_documents: true });
    for (const entry of bare) expect(entry).not.toContainKey("echo");
  });
});

describe("refusals", () => {
  const asked = { query: "q", documents: ["a", "b"] };
  const wrong: [object, string][] = [
    [{ query: "q", documents: [] }, "documents"],
    [{ query: "q", texts: [] }, "texts"],
    [{ query: "q" }, "documents"],
    [{ query: "q", documents: null, texts: null }, "documents"],
    [{ query: "q", documents: "abc" }, "documents"],
    [{ query: "q", documents: { 0: "a" } }, "documents"],
    [{ query: "q", documents: [], texts: ["a"] }, "documents"],
    [{ documents: ["a"] }, "query"],
    [{ query: "", documents: ["a"] }, "query"],
    [{ query: " \n", documents: ["a"] }, "query"],
    [{ query: null, documents: ["a"] }, "query"],
    [{ query: 5, documents: ["a"] }, "query"],
    [{ query: ["q"], documents: ["a"] }, "query"],
    [{ query: {}, documents: ["a"] }, "query"],
    [{ query: { text: 5 }, documents: ["a"] }, "query"],
    [{ query: "q", documents: [null] }, "documents[0]"],
    [{ query: "q", documents: [5] }, "documents[0]"],
    [{ query: "q", documents: [["a"]] }, "documents[0]"],
    [{ query: "q", documents: ["a", ""] }, "documents[1]"],
    [{ query: "q", documents: ["a", "b", " \t\n"] }, "documents[2]"],
    [{ query: "q", documents: ["a", {}] }, "documents[1]"],
    [{ query: "q", documents: ["a", { text: "" }] }, "documents[1]"],
    [{ query: "q", documents: ["a", { text: null, title: "b" }] }, "documents[1]"],
    [{ query: "q", texts: ["a", ""] }, "texts[1]"],
    ...[0, -1, 1.5, "3", true].map((top_n): [object, string] => [{ ...asked, top_n }, "top_n"]),
    [{ ...asked, return_documents: "yes" }, "return_documents"],
    [{ ...asked, return_text: 1 }, "return_text"],
    [{ ...asked, raw_scores: "true" }, "raw_scores"],
    [{ ...asked, truncate: "END" }, "truncate"],
    [{ ...asked, instruction: "Judge" }, "instruction"],
    [{ ...asked, model: 5 }, "model"],
  ];

  test.each(wrong)("%j is a 400 that names %s", async (body, param) => {
    for (const path of ["/v1/rerank", "/v2/rerank"]) {
      const refusal = await badRequest(server, body, path);
      expect(refusal.param).toBe(param);
      expect(refusal.message).toContain(param);
    }
  });

  test.each(["{", "", "[]", '"x"', "null"])("the body %j is a 400", async (body) => {
    await badRequest(server, body, "/rerank");
    await expectRanks(server);
  });

  test("an image is refused by its place and never fetched", async () => {
    let fetched = 0;
    await using host = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: () => (fetched++, new Response("no image")),
    });
    const url = `http://127.0.0.1:${host.port}/x.png`;
    const images = [
      { image: "aGk=" },
      { image: url },
      { image_url: url },
      { image_url: { url } },
      { text: "a fox", image_url: { url } },
      { image: "/etc/hostname", image_url: null },
    ];
    for (const image of images) {
      const inList = await badRequest(
        server,
        { query: "q", documents: ["a", image] },
        "/v1/rerank",
      );
      expect(inList.param).toBe("documents[1]");
      expect(inList.message).toContain("image");
      const asQuery = await badRequest(server, { query: image, texts: ["a"] }, "/rerank");
      expect(asQuery.param).toBe("query");
    }
    expect(fetched).toBe(0);
  });

  test("the server goes on after them", async () => {
    await expectRanks(server);
  });
});

describe("odd text", () => {
  test("half an emoji in query or document reads as U+FFFD, whole ones and joiners pass", async () => {
    // JSON.stringify escapes halves.
    const halves = await rank(server, {
      query: "x\ud83d",
      documents: ["\ude00y", "ok 😀", "👨‍👩‍👧"],
    });
    const mended = await rank(server, {
      query: "x\ufffd",
      documents: ["\ufffdy", "ok 😀", "👨‍👩‍👧"],
    });
    expect(halves).toEqual(mended);
    expect(halves.ranks).toHaveLength(3);
  });

  test("control characters, NUL and right-to-left marks are text", async () => {
    const odd = ["a\u0000b", "\u202eabc", "\u200bx", "שלום עולם", "a".repeat(5000)];
    expect(await scores(server, "q\u0000", odd)).toHaveLength(odd.length);
  });
});

describe("pairs over the limit", () => {
  const LIMIT = pairLimit(MODEL);
  const cases: ReferencePair[] = ["long_doc", "long_query", "both_long"].map((name) =>
    referencePair(MODEL, name),
  );

  test.each(cases)("$name is cut as the reference does, and counted", async (pair) => {
    const answer = await rank(server, { query: pair.query, documents: [pair.document] });
    expectScores(scoresOf(answer.ranks), [pair.score]);
    expect(answer).toMatchObject({ tokens: LIMIT, truncated: "1" });
  });

  test("the longer text loses first: 2 and 20 words keep 2 and 5, 20 and 20 keep 3 and 4", async () => {
    const flags = ["-m", fixture(MODEL), "--embedding-max-length", "10"];
    await using short = await startServer(flags);
    const pairs = [
      [words(2), words(20), words(2), words(20).split(" ").slice(0, 5).join(" ")],
      [words(20), words(2), words(20).split(" ").slice(0, 5).join(" "), words(2)],
    ] as const;
    for (const [asked, document, keptQuery, keptDocument] of pairs) {
      const kept = await rank(server, { query: keptQuery, documents: [keptDocument] });
      const cut = await rank(short, { query: asked, documents: [document] });
      expect(kept.tokens).toBe(10);
      expect(cut).toMatchObject({ tokens: 10, truncated: "1" });
      expectScores(scoresOf(cut.ranks), scoresOf(kept.ranks));
    }
    const both = await rank(short, { query: words(20), documents: [words(20, 1)] });
    const kept = await scores(server, words(20).split(" ").slice(0, 3).join(" "), [
      words(20, 1).split(" ").slice(0, 4).join(" "),
    ]);
    expectScores(scoresOf(both.ranks), kept);
  });

  test("the header counts the pairs that were cut; short neighbours score as if alone", async () => {
    const list = [documents[0], words(20_000), documents[2], longDocument.document.repeat(2)];
    const answer = await rank(server, { query, documents: list });
    expect(answer.truncated).toBe("2");
    const together = scoresOf(answer.ranks);
    const alone = await scores(server, query, [documents[0], documents[2]]);
    expectScores([together[0] ?? Number.NaN, together[2] ?? Number.NaN], alone);
  });

  test("a query or a document of 50 000 words costs one row at the limit", async () => {
    const endless = words(50_000);
    for (const body of [
      { query: endless, documents: ["a fox"] },
      { query, documents: [endless] },
      { query: endless, documents: [endless] },
    ]) {
      const answer = await rank(server, body);
      expect(answer).toMatchObject({ tokens: LIMIT, truncated: "1" });
    }
    const many = await rank(server, { query: endless, documents: Array(20).fill("a fox") });
    expect(many).toMatchObject({ tokens: 20 * LIMIT, truncated: "20" });
  });

  test("truncate:false refuses the whole request by the first document that is too long", async () => {
    const over = words(LIMIT);
    const refused: [object, string][] = [
      [{ query, documents: ["a", "b", over, over] }, "documents[2]"],
      [{ query, documents: [...Array(60).fill("a"), over] }, "documents[60]"],
      [{ query: over, documents: ["a"] }, "documents[0]"],
      [{ query, texts: ["a", over] }, "texts[1]"],
    ];
    for (const [body, param] of refused) {
      const refusal = await badRequest(server, { ...body, truncate: false }, "/v1/rerank");
      expect(refusal.param).toBe(param);
      expect(refusal.message).toContain(param);
      expect(refusal.message).toContain("too large");
      expect(refusal.message).toContain("exceeds maximum context length");
    }
    const fits = { query: words(40), documents: [words(LIMIT - 43)], truncate: false };
    expect(await rank(server, fits)).toMatchObject({ tokens: LIMIT, truncated: null });
    const justOver = { query: words(40), documents: [words(LIMIT - 42)], truncate: false };
    await badRequest(server, justOver, "/v1/rerank");
  });

  test("--no-truncate makes it the default; the request beats it", async () => {
    await using strict = await startServer(["-m", fixture(MODEL), "--no-truncate"]);
    const body = { query, documents: [words(LIMIT)] };
    const refusal = await refusalOf(await strict.post("/v1/rerank", body));
    expect(refusal).toMatchObject({ status: 400, param: "documents[0]" });
    expect((await rank(strict, { ...body, truncate: true })).truncated).toBe("1");
  });
});
