import { expect, test } from "bun:test";
import { Throughput } from "./throughput.ts";

test("means cover the last ten seconds and forget what is older", () => {
  let nowMs = 0;
  const throughput = new Throughput(() => nowMs);
  expect(throughput.perSecond()).toEqual({ requests: 0, items: 0, tokens: 0 });
  throughput.record(3, 40);
  throughput.record(2, 10);
  nowMs = 9_500;
  throughput.record(5, 50);
  expect(throughput.perSecond()).toEqual({ requests: 0.3, items: 1, tokens: 10 });
  nowMs = 10_000;
  expect(throughput.perSecond()).toEqual({ requests: 0.1, items: 0.5, tokens: 5 });
  throughput.record(1, 10);
  expect(throughput.perSecond()).toEqual({ requests: 0.2, items: 0.6, tokens: 6 });
  nowMs = 60_000;
  expect(throughput.perSecond()).toEqual({ requests: 0, items: 0, tokens: 0 });
});
