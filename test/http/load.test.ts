import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { CheckpointCopy } from "../checkpoints.ts";
import { residentMiB, type Server, startServer, until } from "../server.ts";
import { embed, expectAlive, refusalOf } from "./answers.ts";
import { abandonedBurst } from "./connection.ts";
import { abortPending, keepBusy, type Load, refusedInCrowd, untilIdle } from "./pending.ts";
import { shuffledTexts, words } from "./texts.ts";

setDefaultTimeout(60_000);

/** Deep enough that one row takes milliseconds. */
const slow = new CheckpointCopy("bert-mean").layers(24);
const MODEL = ["--embedding-model", slow.directory];
/** More work than any test waits for: only cancelling ends it. */
const endless = { input: shuffledTexts(20_000, 96) };
const load: Load = { path: "/v1/embeddings", endless, small: { input: "waits" } };

afterEach(abortPending);

describe("a full queue", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer([...MODEL, "--embedding-queue-depth", "1"]);
  });
  afterAll(() => server?.stop());

  test("refuses every input shape at once, whole, by the same rule", async () => {
    const running = await keepBusy(server, load);
    const refused = async (path: string, body: unknown) =>
      refusalOf(await refusedInCrowd(server, load, () => server.post(path, body)));
    const shapes = ["vector", ["vector"], [2, 3], [[2, 3]], Array(100).fill("vector")];
    for (const input of shapes) {
      const refusal = await refused("/v1/embeddings", { input });
      expect(refusal).toMatchObject({ status: 503, type: "server_busy" });
      expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect((await refused("/embedding", { content: "vector" })).status).toBe(503);
    expect((await refused("/embed", { inputs: "vector" })).status).toBe(503);
    const invalid = await server.post("/v1/embeddings", { input: "" });
    expect((await refusalOf(invalid)).status).toBe(400);
    expect((await server.get("/health")).status).toBe(200);
    await running.abort();
    await expectAlive(server);
  });

  test("a burst is answered to the last request: served or refused", async () => {
    const texts = shuffledTexts(30, 96);
    const statuses = await Promise.all(
      texts.map(async (text, i) => {
        const response = await server.post("/v1/embeddings", { input: i % 2 ? text : [text] });
        if (response.status !== 200) {
          expect(await refusalOf(response)).toMatchObject({ status: 503, type: "server_busy" });
        }
        return response.status;
      }),
    );
    expect(statuses).toContain(200);
    await expectAlive(server);
  });

  test("one list longer than the queue and than a batch is still served", async () => {
    expect((await embed(server, { input: shuffledTexts(60, 5) })).vectors).toHaveLength(60);
  });
});

test("by default 8 requests may wait; what comes beyond is refused at once", async () => {
  await using server = await startServer(MODEL);
  const running = await keepBusy(server, load);
  // a batch that has just ended takes the waiting ones with it: so many do not fit twice
  const crowd = Array.from({ length: 40 }, () => server.post("/v1/embeddings", load.small));
  const answers = await Promise.all(crowd);
  const refused = answers.filter(({ status }) => status === 503);
  expect(refused.length).toBeGreaterThan(0);
  for (const answer of refused) {
    expect((await refusalOf(answer)).message).toContain("(8 requests wait)");
  }
  const served = answers.filter(({ status }) => status === 200);
  expect(served.length).toBeGreaterThanOrEqual(8);
  expect(served.length + refused.length).toBe(answers.length);
  await running.abort();
});

describe("clients that leave", () => {
  test("free the worker, the queue and the memory", async () => {
    await using server = await startServer([...MODEL, "--embedding-queue-depth", "4"]);
    await expectAlive(server);
    const small = JSON.stringify({ input: shuffledTexts(60, 96) });
    const round = () => abandonedBurst(server.port, "/v1/embeddings", small);
    for (let i = 0; i < 40; i++) await round();
    const warm = residentMiB(server.pid);
    for (let i = 0; i < 40; i++) await round();
    // Without their work being dropped this would wait for 100 000 rows, or be refused for ever.
    const free = async () => (await server.post("/v1/embeddings", { input: "vector" })).ok;
    await until(free, "the places of clients that left are not free again", 20_000);
    expect(residentMiB(server.pid)).toBeLessThan(warm * 1.1 + 16);
  });

  test("one that leaves in the middle of a long list ends its work", async () => {
    await using server = await startServer([...MODEL, "--embedding-queue-depth", "1"]);
    const running = await keepBusy(server, load);
    await running.abort();
    await untilIdle(server);
    await expectAlive(server);
  });
});

describe("time", () => {
  test("no answer within the timeout is a JSON 504, running or waiting, and its work is dropped", async () => {
    await using server = await startServer([...MODEL, "--embedding-request-timeout-secs", "1"]);
    const [running, waiting] = await Promise.all([
      server.post("/v1/embeddings", endless),
      Bun.sleep(300).then(() => server.post("/embedding", endless)),
    ]);
    for (const response of [running, waiting]) {
      const refusal = await refusalOf(response);
      expect(refusal).toMatchObject({ status: 504, type: "server_timeout" });
    }
    await expectAlive(server);
  });

  test.each(["0", "256", "100000"])(
    "a timeout of %s seconds does not strike at once",
    async (seconds) => {
      await using server = await startServer([
        ...MODEL,
        "--embedding-request-timeout-secs",
        seconds,
      ]);
      expect((await embed(server, { input: shuffledTexts(20, 40) })).vectors).toHaveLength(20);
    },
  );

  test("a request that computes for longer than an idle connection may live is answered", async () => {
    await using server = await startServer([...MODEL, "--no-truncate"]);
    const probe = shuffledTexts(50, 94);
    const startedAt = performance.now();
    await embed(server, { input: probe });
    const msPerText = (performance.now() - startedAt) / probe.length;
    const count = Math.ceil(13_000 / msPerText);
    const { vectors } = await embed(server, { input: shuffledTexts(count, 94) });
    expect(vectors).toHaveLength(count);
  }, 100_000);
});

test("words are one token each, as the other tests assume", async () => {
  await using server = await startServer(MODEL);
  expect((await embed(server, { input: words(40) })).tokens).toBe(42);
});
