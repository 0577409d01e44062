import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_MODEL } from "../../src/hub/resolve.ts";
import { storeFolder } from "../../vendor/demo-model.ts";
import { CheckpointCopy } from "../checkpoints.ts";
import { cpuSeconds, residentMiB, type Server, startServer } from "../server.ts";
import { embed, expectAlive } from "./answers.ts";
import { abortPending, send, untilIdle } from "./pending.ts";
import { shuffledTexts } from "./texts.ts";

setDefaultTimeout(120_000);
afterEach(abortPending);

/** Deep enough that a row takes a good part of a millisecond. */
const slow = new CheckpointCopy("bert-mean").layers(24);
const MODEL = ["--embedding-model", slow.directory, "--embedding-queue-depth", "512"];

describe("beside a client that streams 4096 texts", () => {
  const BULK = { input: shuffledTexts(4096, 90) };
  const SINGLES = shuffledTexts(60, 12);
  /** A bulk batch is cut to about this long; a short text waits for at most one that runs. */
  const SLICE_MS = 150;
  /** For what else the machine does while the tests run. */
  const SLACK_MS = 100;

  let server: Server;
  beforeAll(async () => {
    server = await startServer(MODEL);
  });
  afterAll(() => server?.stop());

  async function p95Ms(stillNeeded: () => boolean): Promise<number> {
    const times: number[] = [];
    for (const text of SINGLES) {
      if (!stillNeeded()) throw new Error("the bulk request ended before the short ones did");
      const startedAt = performance.now();
      await embed(server, { input: text });
      times.push(performance.now() - startedAt);
    }
    return times.sort((a, b) => a - b)[Math.floor(0.95 * times.length)] ?? Infinity;
  }

  test("p95 of short texts stays below 3 times the idle one and a slice; the bulk request ends", async () => {
    await p95Ms(() => true);
    const idleMs = await p95Ms(() => true);
    let running = true;
    const bulk = send(server, "/v1/embeddings", BULK);
    void bulk.ended.then(() => (running = false));
    await Bun.sleep(50);
    const busyMs = await p95Ms(() => running);
    expect(busyMs).toBeLessThan(3 * idleMs + SLICE_MS + SLACK_MS);
    expect((await bulk.answer).status).toBe(200);
  });
});

describe("200 clients that leave", () => {
  test("leave less than 60 % of the work to do, and no trace", async () => {
    await using server = await startServer([...MODEL, "--metrics"]);
    const input = (client: number) => ({ input: shuffledTexts(16, 60 + (client % 30)) });
    const clients = Array.from({ length: 200 }, (_, client) => client);
    const sendAll = () => clients.map((client) => send(server, "/v1/embeddings", input(client)));
    await expectAlive(server);

    const idle = cpuSeconds(server.pid);
    for (const { answer } of sendAll()) expect((await answer).status).toBe(200);
    const fullSeconds = cpuSeconds(server.pid) - idle;
    const warmMiB = residentMiB(server.pid);

    const before = cpuSeconds(server.pid);
    const abandoned = sendAll();
    await Promise.race(abandoned.map(({ answer }) => answer));
    await Promise.all(abandoned.map((pending) => pending.abort()));
    await untilIdle(server);
    expect(cpuSeconds(server.pid) - before).toBeLessThan(0.6 * fullSeconds);
    const metrics = await (await server.get("/metrics")).text();
    expect(metrics).toMatch(/^mlxcel_queue_waiting\{.*\} 0$/m);
    expect(residentMiB(server.pid)).toBeLessThan(warmMiB * 1.1 + 16);
    for (const { answer } of sendAll()) expect((await answer).status).toBe(200);
  });
});

describe("resources", () => {
  test("a server without requests computes less than 1 % of the time", async () => {
    await using server = await startServer(MODEL);
    await expectAlive(server);
    await untilIdle(server);
    const before = cpuSeconds(server.pid);
    const watchedSeconds = 4;
    await Bun.sleep(watchedSeconds * 1000);
    // the clock of the system has ticks of 10 ms
    expect(cpuSeconds(server.pid) - before).toBeLessThanOrEqual(watchedSeconds / 100 + 0.01);
  });

  test.skipIf(process.platform !== "linux")(
    "loading needs no more than 1.15 times the weights and 150 MB",
    async () => {
      const weightBytes = statSync(join(storeFolder(), DEFAULT_MODEL, "model.safetensors")).size;
      await using server = await startServer(["--models-dir", storeFolder()]);
      const [, peakKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(
        readFileSync(`/proc/${server.pid}/status`, "utf8"),
      ) ?? ["", "Infinity"];
      expect(Number(peakKiB) * 1024).toBeLessThan(1.15 * weightBytes + 150e6);
    },
  );

  /** LONG=1: from request 1000 to request 10 000, as a server sees them in a day. */
  const LONG = process.env["LONG"] === "1";

  test("memory reaches a plateau under texts of every length up to 512 tokens", async () => {
    const requests = LONG ? 10_000 : 600;
    const long = new CheckpointCopy("bert-mean")
      .positions(512)
      .set("sentence_bert_config.json", { max_seq_length: 512 })
      .set("tokenizer_config.json", { model_max_length: 512 });
    await using server = await startServer(["--embedding-model", long.directory]);
    const texts = shuffledTexts(requests, 510);
    const residentWhile = async (some: readonly string[]) => {
      const samples: number[] = [];
      for (const [i, text] of some.entries()) {
        await embed(server, { input: text });
        if (i % 20 === 19) samples.push(residentMiB(server.pid));
      }
      return samples.sort((one, other) => one - other);
    };
    const early = await residentWhile(texts.slice(0, requests / 10));
    await residentWhile(texts.slice(requests / 10, -requests / 10));
    const late = await residentWhile(texts.slice(-requests / 10));
    // garbage collection moves it up and down by some MiB: what was needed at most, and what is needed now
    const [earlyMiB = 0, lateMiB = Infinity] = [early.at(-1), late[late.length >> 1]];
    // a short run has not seen all lengths at its tenth
    expect(lateMiB).toBeLessThan(LONG ? earlyMiB * 1.05 : earlyMiB * 1.1 + 16);
  }, 1_200_000);
});
