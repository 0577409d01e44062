import { expect, test } from "bun:test";
import type { Run } from "./measure.ts";
import { cellsTable, markdownTable, summarise } from "./report.ts";
import { SCENARIOS } from "./scenarios.ts";

function run(target: string, perSecond: number, over: Partial<Run> = {}): Run {
  return {
    target,
    scenario: "a1",
    round: 0,
    startedAt: "2026-01-31T12:00:00.000Z",
    seconds: 1,
    requests: 10,
    failures: 0,
    requestsPerSecond: perSecond,
    textsPerSecond: perSecond,
    tokensPerSecond: 10 * perSecond,
    latencyMs: { p50: 1, p95: 2, p99: 3, max: 4 },
    processorShares: {},
    noisy: false,
    ...over,
  };
}

const A1 = SCENARIOS.filter(({ name }) => name === "a1");

test("noisy runs count only where there are no others", () => {
  const runs = [
    ...[run("one", 100), run("one", 300), run("one", 9, { noisy: true })],
    ...[run("two", 50, { noisy: true }), run("two", 70, { noisy: true })],
    run("three", 20, { noisy: null }),
  ];
  const cells = summarise(A1, ["one", "two", "three"], runs);
  const seen = cells.map(({ target, requestsPerSecond, noisy, runs: counted, noisyRuns }) => ({
    ...{ target, requestsPerSecond, noisy, counted, noisyRuns },
  }));
  expect(seen).toEqual([
    { target: "one", requestsPerSecond: 200, noisy: false, counted: 2, noisyRuns: 1 },
    { target: "two", requestsPerSecond: 60, noisy: true, counted: 2, noisyRuns: 2 },
    { target: "three", requestsPerSecond: 20, noisy: false, counted: 1, noisyRuns: 0 },
  ]);
  expect(cells.map(({ ratio }) => ratio)).toEqual([200 / 60, 60 / 200, 20 / 200]);
});

test("the median of three runs is the one in the middle", () => {
  const [cell] = summarise(A1, ["one"], [run("one", 5), run("one", 900), run("one", 7)]);
  expect(cell?.requestsPerSecond).toBe(7);
  expect(cell?.ratio).toBeNull();
});

test("a scenario for tokens is ranked by them", () => {
  const b1 = SCENARIOS.filter(({ name }) => name === "b1");
  const batch = { scenario: "b1" };
  const runs = [run("one", 2, batch), run("two", 1, { ...batch, tokensPerSecond: 40 })];
  expect(summarise(b1, ["one", "two"], runs).map(({ ratio }) => ratio)).toEqual([0.5, 2]);
});

test("failures of all runs are added up; without an answer there is no latency", () => {
  const dead = { requests: 0, failures: 3, latencyMs: null, tokensPerSecond: 0 };
  const runs = [run("one", 0, dead), run("one", 0, { ...dead, noisy: true }), run("two", 4)];
  const cells = summarise(A1, ["one", "two"], runs);
  expect(cells[0]).toMatchObject({ requests: 0, failures: 6, latencyMs: null, ratio: 0 });
  expect(cells[1]?.ratio).toBeNull();
  expect(cellsTable(cells, false).split("\n")[1]).toMatch(/^a1 +one +0 +0 +0 +– +– +– +0\.00 +6$/);
});

test("the Markdown table has the ratio of the first target to the best of the others", () => {
  const runs = [run("ours", 200), run("slow", 50), run("fast", 160, { noisy: true })];
  const targets = ["ours", "slow", "fast", "absent"];
  expect(markdownTable(A1, targets, summarise(A1, targets, runs))).toBe(
    [
      "|  | ours | slow | fast | absent | ratio to the best peer |",
      "| --- | --- | --- | --- | --- | --- |",
      "| a1: short texts, 1 per request, 1 client, requests/s | 200 (1.00 / 3.00 ms) | 50.0 (1.00 / 3.00 ms) | ~160 (1.00 / 3.00 ms) | – | 1.25 |",
      "",
    ].join("\n"),
  );
});
