import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { CheckpointCopy, fixture } from "../checkpoints.ts";
import { residentMiB, type Server, startServer, until } from "../server.ts";
import { embed, expectAlive, refusalOf } from "./answers.ts";
import { abandonedBurst } from "./connection.ts";
import { abortPending, keepBusy, type Load, refusedInCrowd, send, untilIdle } from "./pending.ts";
import {
  expectRanks,
  expectScores,
  rank,
  rankBare,
  type Ranking,
  RERANK_PATHS,
  referencePair,
  scores,
  scoresOf,
} from "./rankings.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

/** Deep enough that one pair takes milliseconds. */
const deep = deepReranker(24).directory;
const RERANKER = ["--reranker-model", deep];
const QUERY = "the old fox";
/** More work than any test waits for: only cancelling ends it. */
const endless = { query: QUERY, documents: shuffledTexts(20_000, 90) };
const small = { query: QUERY, documents: ["waits"] };
const ranking: Load = { path: "/v1/rerank", endless, small };

afterEach(abortPending);

function deepReranker(count: number): CheckpointCopy {
  const prefix = "bert.encoder.layer.";
  const copy = new CheckpointCopy("rerank-bert").set("config.json", { num_hidden_layers: count });
  return copy.tensors((table) => {
    for (const [name, tensor] of [...table]) {
      if (!name.startsWith(prefix)) continue;
      for (let layer = Number(name.split(".")[3]); layer < count; layer += 2) {
        table.set(name.replace(/layer\.\d+/, `layer.${layer}`), tensor);
      }
    }
  });
}

describe("many documents", () => {
  let server: Server;
  beforeAll(async () => {
    const flags = ["--embedding-queue-depth", "1"];
    server = await startServer(["-m", fixture("rerank-bert"), ...flags]);
  });
  afterAll(() => server?.stop());

  test("a thousand in one request score as they do in small ones, and count their tokens", async () => {
    const distinct = shuffledTexts(50, 80);
    const documents = Array.from({ length: 1000 }, (_, i) => distinct[i % 50] ?? "");
    const few = await rank(server, { query: QUERY, documents: distinct });
    const many = await rank(server, { query: QUERY, documents });
    const wanted = scoresOf(few.ranks);
    expectScores(
      scoresOf(many.ranks),
      documents.map((_, i) => wanted[i % 50] ?? Number.NaN),
    );
    expect(many.tokens).toBe(20 * few.tokens);
    expect(many.ranks).toHaveLength(1000);
  });

  test("ten thousand, echoed or only the best of them", async () => {
    const distinct = shuffledTexts(97, 6);
    const documents = Array.from({ length: 10_000 }, (_, id) => ({
      id,
      text: distinct[id % 97] ?? "",
      tags: ["grün", null],
    }));
    const all = await rank(server, { query: QUERY, documents, return_documents: true });
    expect(all.ranks).toHaveLength(documents.length);
    for (const { index, echo } of all.ranks) expect(echo).toEqual(documents[index]);
    const wanted = await scores(server, QUERY, distinct);
    expectScores(
      scoresOf(all.ranks),
      documents.map(({ id }) => wanted[id % 97] ?? Number.NaN),
    );
    const best = await rankBare(server, { query: QUERY, texts: documents, top_n: 5 });
    expect(best.map(({ score }) => score)).toEqual(all.ranks.slice(0, 5).map(({ score }) => score));
  });

  test("one bad document among ten thousand refuses the request by its index", async () => {
    const documents = Array<unknown>(10_000).fill("a fox");
    documents[9_876] = { text: " " };
    const refusal = await refusalOf(await server.post("/rerank", { query: QUERY, documents }));
    expect(refusal).toMatchObject({ status: 400, param: "documents[9876]" });
    await expectRanks(server);
  });

  test("a document of 20 000 words does not hurt the others, nor does such a query", async () => {
    const [short = Number.NaN] = await scores(server, QUERY, ["short"]);
    const [together = Number.NaN] = await scores(server, QUERY, ["short", words(20_000)]);
    expectScores([together], [short]);
    expect(await scores(server, words(20_000), ["short", "long"])).toHaveLength(2);
  });
});

describe("a full queue", () => {
  let server: Server;
  beforeAll(async () => {
    const flags = ["--embedding-queue-depth", "1", "--metrics"];
    server = await startServer([...RERANKER, "--embedding-model", fixture("bert-mean"), ...flags]);
  });
  afterAll(() => server?.stop());

  test("refuses every shape whole and at once, while embeddings go on", async () => {
    const running = await keepBusy(server, ranking);
    for (const path of RERANK_PATHS) {
      for (const body of [small, { query: QUERY, texts: Array(100).fill("fox") }]) {
        const request = () => server.post(path, body);
        const refusal = await refusalOf(await refusedInCrowd(server, ranking, request));
        expect(refusal).toMatchObject({ status: 503, type: "server_busy" });
        expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
      }
    }
    const invalid = await server.post("/v1/rerank", { query: QUERY, documents: [] });
    expect((await refusalOf(invalid)).status).toBe(400);
    await expectAlive(server);
    expect((await server.get("/health")).status).toBe(200);
    await running.abort();
    await expectRanks(server);
  });

  test("one of embeddings does not refuse rerank requests", async () => {
    const embeddings: Load = {
      path: "/v1/embeddings",
      endless: { input: shuffledTexts(60_000, 96) },
      small: { input: "waits" },
    };
    const running = await keepBusy(server, embeddings);
    const request = () => server.post("/v1/embeddings", { input: "a" });
    expect((await refusedInCrowd(server, embeddings, request)).status).toBe(503);
    await expectRanks(server);
    await running.abort();
  });

  test("a burst is answered to the last request: served or refused", async () => {
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const list = { [i % 2 ? "documents" : "texts"]: shuffledTexts(3, 90) };
        const response = await server.post("/v1/rerank", { query: QUERY, ...list });
        if (response.status !== 200) {
          expect(await refusalOf(response)).toMatchObject({ status: 503, type: "server_busy" });
        }
        return response.status;
      }),
    );
    expect(statuses).toContain(200);
    await expectRanks(server);
  });
});

describe("clients that leave", () => {
  test("in the middle of a long list end its work", async () => {
    const flags = ["--embedding-queue-depth", "1", "--metrics"];
    await using server = await startServer([...RERANKER, ...flags]);
    for (let round = 0; round < 3; round++) {
      const running = await keepBusy(server, ranking);
      await running.abort();
      // The rest of the documents would take longer than any test may.
      await untilIdle(server);
    }
    await expectRanks(server);
  });

  test("free their places and their memory", async () => {
    await using server = await startServer([...RERANKER, "--embedding-queue-depth", "4"]);
    const body = JSON.stringify({ query: QUERY, documents: shuffledTexts(60, 90) });
    const round = () => abandonedBurst(server.port, "/v1/rerank", body);
    for (let i = 0; i < 20; i++) await round();
    const warm = residentMiB(server.pid);
    for (let i = 0; i < 20; i++) await round();
    const free = async () => (await server.post("/v1/rerank", small)).ok;
    await until(free, "the places of clients that left are not free again", 20_000);
    expect(residentMiB(server.pid)).toBeLessThan(warm * 1.1 + 16);
  });
});

describe("time", () => {
  test("no answer within the timeout is a JSON 504, running or waiting; embeddings go on", async () => {
    await using server = await startServer([
      ...[...RERANKER, "--embedding-model", fixture("bert-mean")],
      ...["--embedding-request-timeout-secs", "1"],
    ]);
    const [running, waiting, texts] = await Promise.all([
      server.post("/v1/rerank", endless),
      Bun.sleep(300).then(() => server.post("/v2/rerank", endless)),
      Bun.sleep(300).then(() => server.post("/rerank", { query: QUERY, texts: endless.documents })),
      expectAlive(server),
    ]);
    for (const response of [running, waiting, texts]) {
      const refusal = await refusalOf(response);
      expect(refusal).toMatchObject({ status: 504, type: "server_timeout" });
    }
    await expectRanks(server);
    await expectAlive(server);
  });

  test("SIGTERM answers a rerank that runs, and refuses the next", async () => {
    await using server = await startServer(RERANKER);
    const documents = shuffledTexts(100, 90);
    const running = rank(server, { query: QUERY, documents });
    await Bun.sleep(200);
    const exit = server.stop();
    expect((await running).ranks).toHaveLength(documents.length);
    expect(await exit).toBe(0);
  });
});

describe("many clients", () => {
  test("every answer is its own request's, with its own usage, in both shapes", async () => {
    await using server = await startServer([
      ...["-m", fixture("rerank-bert"), "--embedding-queue-depth", "512"],
    ]);
    const queries = shuffledTexts(30, 20);
    const documents = shuffledTexts(6, 90);
    const baselines: Ranking[] = [];
    for (const query of queries) baselines.push(await rank(server, { query, documents }));
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        queries.map(async (query, i) => {
          if ((i + round) % 2) return rankBare(server, { query, texts: documents });
          const answer = await rank(server, { query, documents });
          expect(answer.tokens).toBe(baselines[i]?.tokens ?? Number.NaN);
          return answer.ranks;
        }),
      );
      answers.forEach((ranks, i) =>
        expectScores(scoresOf(ranks), scoresOf(baselines[i]?.ranks ?? [])),
      );
    }
  });

  test("memory reaches a plateau under pairs of every length", async () => {
    await using server = await startServer(["-m", fixture("rerank-bert")]);
    const documents = shuffledTexts(400, 90);
    const post = async (texts: readonly string[]) => {
      for (const [i, text] of texts.entries()) await scores(server, words(1 + (i % 40)), [text]);
    };
    await post(documents.slice(0, 100));
    const early = residentMiB(server.pid);
    await post(documents.slice(100));
    expect(residentMiB(server.pid)).toBeLessThan(early * 1.1 + 16);
  });
});

describe("an embedder and a reranker in one process", () => {
  const embedder = new CheckpointCopy("bert-mean").layers(12).directory;
  const SAMPLES = 41;
  /** Two cores for three busy threads and whatever else the machine does; waiting for the rerank would be 100 x and more. */
  const SLACK = 10;

  async function medianMs(server: Server, enough: () => boolean): Promise<number> {
    const durations: number[] = [];
    while (durations.length < SAMPLES && !enough()) {
      const startedAt = performance.now();
      await embed(server, { input: words(90) });
      durations.push(performance.now() - startedAt);
    }
    expect(durations.length).toBeGreaterThanOrEqual(5);
    return durations.toSorted((a, b) => a - b)[durations.length >> 1] ?? Number.NaN;
  }

  test("embeddings are hardly slower while 500 documents are ranked", async () => {
    await using server = await startServer([...RERANKER, "--embedding-model", embedder]);
    await expectRanks(server);
    await medianMs(server, () => false);
    const idleMs = await medianMs(server, () => false);
    const rerank = send(server, "/v1/rerank", { query: QUERY, documents: shuffledTexts(500, 90) });
    let ended = false;
    void rerank.ended.then(() => (ended = true));
    const busyMs = await medianMs(server, () => ended);
    expect(busyMs).toBeLessThan(SLACK * idleMs);
    expect((await rerank.answer).status).toBe(200);
  });

  test("both give their own numbers while the other works", async () => {
    const { query, document, score } = referencePair("rerank-bert", "relevant");
    await using server = await startServer([
      ...["--reranker-model", fixture("rerank-bert"), "--embedding-model", fixture("bert-mean")],
      ...["--embedding-queue-depth", "200"],
    ]);
    const alone = await embed(server, { input: document });
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        if (i % 2) expectScores(await scores(server, query, [document]), [score]);
        else expect((await embed(server, { input: document })).vectors).toEqual(alone.vectors);
      }),
    );
  });
});
