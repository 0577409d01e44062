import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { rowStarts } from "../nn/row-layout.ts";
import { pool, type PoolingMode } from "./pooling.ts";

mx.openDevice("cpu");

const WIDTH = 3;
const LENGTHS = Int32Array.of(1, 30, 4, 5, 12, 30);
const PROMPTS = Int32Array.of(0, 6, 3, 0, 6, 29);
const TOTAL = LENGTHS.reduce((a, b) => a + b, 0);
const HIDDEN = Float32Array.from({ length: TOTAL * WIDTH }, (_, i) => Math.cos(i * 1.3) - 2);

type Rows = readonly { readonly position: number; readonly state: Float32Array }[];

/** Rows of tokens that take part, each with its position in the whole row. */
function tokenRows(hidden: Float32Array, skipped: Int32Array): Rows[] {
  return Array.from(rowStarts(LENGTHS), (start, row) =>
    Array.from({ length: LENGTHS[row]! - skipped[row]! }, (_, i) => {
      const position = skipped[row]! + i;
      const from = (start + position) * WIDTH;
      return { position, state: hidden.subarray(from, from + WIDTH) };
    }),
  );
}

function sum(row: Rows, d: number, weight = (_position: number) => 1): number {
  return row.reduce((total, { state, position }) => total + state[d]! * weight(position), 0);
}

/** The definitions, component d of one row. */
const definitions: Record<PoolingMode, (row: Rows, d: number) => number> = {
  cls: (row, d) => row[0]!.state[d]!,
  lasttoken: (row, d) => row.at(-1)!.state[d]!,
  max: (row, d) => Math.max(...row.map(({ state }) => state[d]!)),
  mean: (row, d) => sum(row, d) / row.length,
  mean_sqrt_len: (row, d) => sum(row, d) / Math.sqrt(row.length),
  weightedmean: (row, d) => {
    const weights = row.reduce((total, { position }) => total + position + 1, 0);
    return sum(row, d, (position) => position + 1) / weights;
  },
};

function pooled(hidden: Float32Array, modes: readonly PoolingMode[], includePrompt: boolean) {
  return mx.scope(() => {
    const states = mx.fromFloat32(hidden, [TOTAL, WIDTH]);
    const rows = { lengths: LENGTHS, promptTokens: PROMPTS };
    const vectors = pool(states, rows, { modes, includePrompt });
    expect(vectors.shape).toEqual([LENGTHS.length, WIDTH * modes.length]);
    return vectors.toFloat32();
  });
}

const MODES: readonly PoolingMode[] = [
  "cls",
  "max",
  "mean",
  "mean_sqrt_len",
  "weightedmean",
  "lasttoken",
];

describe.each(MODES)("%s", (mode) => {
  const define = definitions[mode];

  test.each([
    ["over all tokens", true, new Int32Array(LENGTHS.length)],
    ["without the prompt's tokens", false, PROMPTS],
  ] as const)("%s", (_, includePrompt, skipped) => {
    const wanted = tokenRows(HIDDEN, skipped).flatMap((row) =>
      [0, 1, 2].map((d) => define(row, d)),
    );
    const actual = pooled(HIDDEN, [mode], includePrompt);
    wanted.forEach((value, i) => expect(actual[i]).toBeCloseTo(value, 5));
  });

  test("a row of NaN stays in its row", () => {
    const hidden = HIDDEN.slice().fill(Number.NaN, WIDTH, 31 * WIDTH);
    pooled(hidden, [mode], true).forEach((value, i) => {
      expect(Number.isNaN(value)).toBe(Math.floor(i / WIDTH) === 1);
    });
  });
});

test("several modes are concatenated in the order given", () => {
  const both = pooled(HIDDEN, ["max", "cls"], true);
  const [max, cls] = [pooled(HIDDEN, ["max"], true), pooled(HIDDEN, ["cls"], true)];
  LENGTHS.forEach((_, row) => {
    const [own, start] = [row * WIDTH, row * WIDTH * 2];
    expect(both.slice(start, start + WIDTH)).toEqual(max.slice(own, own + WIDTH));
    expect(both.slice(start + WIDTH, start + 2 * WIDTH)).toEqual(cls.slice(own, own + WIDTH));
  });
});
