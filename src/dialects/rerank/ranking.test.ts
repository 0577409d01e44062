import { expect, test } from "bun:test";
import type { RankingOptions } from "../dialect.ts";
import { rerankResult } from "../testing/context.ts";
import { ranking } from "./ranking.ts";

const OPTIONS: RankingOptions = {
  kind: "ranking",
  model: "judge",
  shape: "envelope",
  rawScores: false,
};

test("the order is that of a plain sort, for scores of any sign and size and many equals", () => {
  let state = 7;
  const scores = Array.from({ length: 5000 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const sign = state & 1 ? -1 : 1;
    return sign * ((state >>> 8) % 50) * 10 ** (((state >>> 3) % 60) - 30);
  });
  const result = rerankResult(scores);
  const expected = scores
    .map((_, i) => i)
    .sort((a, b) => result.scores[b]! - result.scores[a]! || a - b);
  expect(ranking(result, OPTIONS).order).toEqual(expected);
  expect(ranking(result, { ...OPTIONS, topN: 7 }).order).toEqual(expected.slice(0, 7));
});

test.each([
  [
    [1e-45, 0, -1e-45, -0],
    [0, 1, 3, 2],
  ],
  [
    [3.4e38, -3.4e38, 1],
    [0, 2, 1],
  ],
  [[5], [0]],
])("%j", (scores, order) => {
  expect(ranking(rerankResult(scores), OPTIONS).order).toEqual(order);
});

test("raw scores have an order of their own", () => {
  const result = { ...rerankResult([1, 2]), rawScores: Float32Array.of(2, 1) };
  expect(ranking(result, { ...OPTIONS, rawScores: true }).order).toEqual([0, 1]);
  expect(ranking(result, OPTIONS).order).toEqual([1, 0]);
});
