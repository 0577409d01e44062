/** Runs the real program against real servers of reference checkpoints. No speed is asserted. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { z } from "zod";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { startServer, type Server } from "../../test/server.ts";
import { SCENARIO_NAMES, SCENARIOS } from "./bench/scenarios.ts";
import { mlxcel } from "./testing/mlxcel.ts";

const SHORT = ["--seconds", "0.1", "--rounds", "1"];

const Positive = z.number().positive();
const Latency = z.strictObject({ p50: Positive, p95: Positive, p99: Positive, max: Positive });
const Speed = { requestsPerSecond: Positive, textsPerSecond: Positive, tokensPerSecond: Positive };
const Share = z.number().nonnegative();
const Report = z.strictObject({
  version: z.string(),
  finishedAt: z.iso.datetime(),
  machine: z.strictObject({
    platform: z.string(),
    processor: z.string(),
    cores: Positive,
    memoryGb: Positive,
  }),
  rounds: z.int(),
  seconds: Positive,
  targets: z.array(
    z.object({
      target: z.object({ name: z.string(), url: z.url(), pids: z.array(z.int()) }),
      vectorDifference: z.number(),
      scoreDifference: z.number().optional(),
      doesNotRank: z.string().optional(),
    }),
  ),
  scenarios: z.array(
    z.object({ name: z.string(), title: z.string(), meanTokensPerRequest: z.array(Positive) }),
  ),
  summary: z.array(
    z.strictObject({
      scenario: z.string(),
      target: z.string(),
      runs: z.int().min(1),
      noisyRuns: z.int(),
      noisy: z.boolean(),
      requests: z.int().min(1),
      failures: z.int(),
      ...Speed,
      latencyMs: Latency,
      ratio: Positive.nullable(),
    }),
  ),
  runs: z.array(
    z.strictObject({
      target: z.string(),
      scenario: z.string(),
      round: z.int(),
      startedAt: z.iso.datetime(),
      seconds: Positive,
      requests: z.int().min(1),
      failures: z.int(),
      firstFailure: z.string().optional(),
      ...Speed,
      latencyMs: Latency,
      otherLatencyMs: Latency.optional(),
      processorShares: z.strictObject({
        generator: Share.optional(),
        server: Share.optional(),
        others: Share.optional(),
        serverSeconds: Share.optional(),
      }),
      noisy: z.boolean().nullable(),
      memory: z.strictObject({ residentMb: Positive, peakMb: Positive }).optional(),
    }),
  ),
});

async function benched(args: readonly string[]) {
  const { stdout, stderr, code } = await mlxcel(["bench", ...args, "--json"]);
  expect({ stderr, code }).toEqual({ stderr, code: 0 });
  return { report: Report.parse(JSON.parse(stdout)), stderr };
}

let server: Server;
beforeAll(async () => {
  const flags = ["--embedding-model", fixture("bert-mean"), "--embedding-queue-depth", "512"];
  server = await startServer([...flags, "--reranker-model", fixture("rerank-bert")]);
});
afterAll(() => server.stop());

test("a server of its own runs every scenario, and JSON tells all of it", async () => {
  const models = ["-m", fixture("bert-mean"), "--rerank-model", fixture("rerank-bert")];
  const { report } = await benched([...models, ...SHORT]);
  expect(report.runs.map(({ scenario }) => scenario)).toEqual([...SCENARIO_NAMES]);
  expect(report.summary.map(({ scenario }) => scenario)).toEqual([...SCENARIO_NAMES]);
  expect(report.scenarios.map(({ title }) => title)).toEqual(SCENARIOS.map(({ title }) => title));
  for (const { failures, memory, otherLatencyMs, scenario, processorShares } of report.runs) {
    expect(failures).toBe(0);
    expect(memory === undefined).toBe(process.platform !== "linux");
    expect(otherLatencyMs === undefined).toBe(scenario !== "c");
    expect(processorShares.others === undefined).toBe(process.platform !== "linux");
  }
  const [{ meanTokensPerRequest: [short = 0] = [] } = {}] = report.scenarios;
  expect(short).toBeWithin(6, 10);
});

test("pairs are kept as short as the reranker reads them whole, and that is said", async () => {
  const most = 48; // the embedder reads 96
  const narrow = copyOfFixture("rerank-bert");
  editJson<{ model_max_length: number }>(join(narrow, "tokenizer_config.json"), (config) => {
    config.model_max_length = most;
  });
  const models = ["-m", fixture("bert-mean"), "--rerank-model", narrow];
  const { report, stderr } = await benched([...models, "-s", "d1", ...SHORT]);
  expect(stderr).toContain(`reads at most ${most} tokens of a pair: the documents of d1 and d4`);
  const [{ meanTokensPerRequest: [tokens = 0] = [] } = {}] = report.scenarios;
  expect(tokens).toBeLessThanOrEqual(32 * most);
});

test("targets take turns, each is set against the best of the others", async () => {
  const names = ["one", "two", "three"];
  const targets = names.flatMap((name) => ["--target", `${name}=${server.url}`]);
  const run = ["--scenarios", "a8,d1", "--rounds", "2", "--seconds", "0.05"];
  const { report } = await benched([...targets, ...run]);
  const turns = [...names, "two", "three", "one"];
  expect(report.runs.map(({ target }) => target)).toEqual([...turns, ...turns]);
  for (const scenario of ["a8", "d1"] as const) {
    const cells = report.summary.filter((cell) => cell.scenario === scenario);
    const speeds = cells.map((cell) =>
      scenario === "a8" ? cell.requestsPerSecond : cell.tokensPerSecond,
    );
    for (const [i, { ratio }] of cells.entries()) {
      const others = speeds.filter((_, other) => other !== i);
      expect(ratio).toBeCloseTo((speeds[i] ?? 0) / Math.max(...others), 9);
    }
  }
  expect(report.targets.map(({ vectorDifference }) => vectorDifference)).toEqual([0, 0, 0]);
});

test("the table has a line per target and scenario; what the runs cost goes to stderr", async () => {
  const targets = ["--target", `one=${server.url}/v1/,pid=${server.pid}`, "--target", server.url];
  const run = await mlxcel(["bench", ...targets, "--scenarios", "a1,e8", ...SHORT]);
  expect(run.code).toBe(0);
  const [head, ...lines] = run.stdout.trimEnd().split("\n");
  expect(head).toMatch(
    /^scenario +target +req\/s +texts\/s +tokens\/s +p50 ms +p95 ms +p99 ms +ratio +failed$/,
  );
  const address = server.url.replace("http://", "");
  const cells = lines.slice(0, 4).map((line) => line.split(/ +/).slice(0, 2));
  expect(cells).toEqual([
    ["a1", "one"],
    ["a1", address],
    ["e8", "one"],
    ["e8", address],
  ]);
  expect(run.stderr).toMatch(
    /^mlxcel: a1 round 1\/1 one: .* req\/s, .*; load generator .*, other/m,
  );
});

test("a request that is refused is counted and shown, and the others are measured", async () => {
  await using narrow = await startServer([
    ...["--embedding-model", fixture("bert-mean"), "--embedding-queue-depth", "1"],
  ]);
  const load = ["--target", narrow.url, "--scenarios", "a32"];
  const { report, stderr } = await benched([...load, "--seconds", "0.3", "--rounds", "1"]);
  const [run] = report.runs;
  expect(run?.failures).toBeGreaterThan(0);
  expect(run?.firstFailure).toMatch(/^503: .*server_busy/);
  expect(report.summary[0]?.failures).toBe(run?.failures ?? 0);
  expect(stderr).toContain(`${run?.failures} failed, first: 503`);
});

test("a scenario without any answer ends with exit code 1", async () => {
  // lets the checks pass, and refuses what a1 sends
  const front = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = await request.text();
      if (/"input":"/.test(body)) return new Response("not today", { status: 503 });
      return server.fetch(new URL(request.url).pathname, { method: request.method, body });
    },
  });
  const run = await mlxcel(["bench", "--target", `${front.url}`, "--scenarios", "a1", ...SHORT]);
  await front.stop(true);
  expect(run.code).toBe(1);
  expect(run.stdout).toMatch(/^a1 .* 0 +0 +0 +– +– +– +\d+$/m);
  expect(run.stderr).toMatch(/\d+ failed, first: 503: not today/);
});

describe("refused in one line", () => {
  test.each([
    ["bert-cls", "mean", "of another size"],
    ["bert-mean", "cls", "they differ by up to"],
  ])("%s with %s pooling answers other vectors", async (model, pooling, why) => {
    const flags = ["--embedding-model", fixture(model), "--pooling", pooling];
    await using peer = await startServer(flags);
    const targets = ["--target", `ours=${server.url}`, "--target", `peer=${peer.url}`];
    await refused([...targets, "--scenarios", "a1", ...SHORT], 1, [
      `target peer answers other vectors than ours: ${why}`,
    ]);
  });

  test("a server that ranks otherwise", async () => {
    const flags = ["--embedding-model", fixture("bert-mean"), "--rerank"];
    await using peer = await startServer(flags);
    const targets = ["--target", `ours=${server.url}`, "--target", `peer=${peer.url}`];
    await refused([...targets, "--scenarios", "d1", ...SHORT], 1, [
      "target peer answers other scores than ours:",
    ]);
  });

  test("a server of something else", async () => {
    const web = Bun.serve({ port: 0, fetch: () => new Response("<html>") });
    await refused(["--target", `web=${web.url}`], 1, ["target web: /tokenize answers something"]);
    await refused(["--target", server.url, "--target", `web=${web.url}`, ...SHORT], 1, [
      "target web: /v1/embeddings answers something else than a list of 7 embeddings",
    ]);
    await web.stop(true);
  });

  test("nobody ranks", async () => {
    await using embedder = await startServer(["--embedding-model", fixture("bert-mean")]);
    const command = ["--target", embedder.url, "--scenarios", "d1", ...SHORT];
    await refused(command, 1, ["no target ranks", "--reranker-model"]);
  });

  test.each([
    [
      ["--target", "http://127.0.0.1:1"],
      1,
      [
        "mlxcel: target 127.0.0.1:1: connection refused: is a server running at http://127.0.0.1:1?\n",
      ],
    ],
    [["--target", "localhost:8080"], 2, ["--target takes [NAME=]URL", "localhost:8080"]],
    [["--target", "a=http://h,pid=x"], 2, ["--target takes [NAME=]URL", "pid=x"]],
    [["--target", "a=http://h", "--target", "a=http://i"], 2, ["two targets have the name a"]],
    [["--scenarios", "a1,z9"], 2, ["--scenarios takes all, or some of a1", '"z9"']],
    [["--scenarios", "d1"], 2, ["d1 needs --rerank-model"]],
    [["--seconds", "0"], 2, ["--seconds takes a number of seconds above 0"]],
    [["--seconds", "soon"], 2, ["--seconds takes a number of seconds above 0"]],
    [["--rounds", "0"], 2, ["--rounds takes a whole number, 1 or more"]],
    [["-m", "./no-such-model"], 1, ["no such directory"]],
    [["-m", fixture("rerank-bert")], 1, ["mlxcel ended while it started", "not an embedding"]],
  ])("%j", (args, code, words) => refused(args, code, words));
});

async function refused(args: readonly string[], code: number, words: readonly string[]) {
  const exit = await mlxcel(["bench", ...args]);
  expect({ code: exit.code, stdout: exit.stdout }).toEqual({ code, stdout: "" });
  const remarks =
    /^mlxcel: (target .* is left out|target .*: largest difference|.* reads at most \d+)/;
  const lines = exit.stderr.trimEnd().split("\n");
  const errors = lines.filter((line) => !remarks.test(line));
  expect(errors).toHaveLength(1);
  for (const word of words) expect(exit.stderr).toContain(word);
}
