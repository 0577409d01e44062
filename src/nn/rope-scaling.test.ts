/** Frequencies and factors against `ROPE_INIT_FUNCTIONS` of transformers 5.24.0. */
import { expect, test } from "bun:test";
import { type RopeScaling, scaledRope, yarnMagnitude } from "./rope-scaling.ts";

interface Reference {
  readonly scaling: RopeScaling;
  readonly headDim: number;
  readonly theta: number;
  readonly frequencies: readonly number[];
}

const yarn = { kind: "yarn", betaFast: 32, betaSlow: 1, truncate: true } as const;

const REFERENCES: readonly Reference[] = [
  {
    scaling: { kind: "linear", factor: 4 },
    headDim: 12,
    theta: 10_000,
    frequencies: [0.25, 0.053860862, 0.011603971, 0.0024999999, 0.00053860858, 0.00011603974],
  },
  {
    scaling: {
      kind: "llama3",
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalPositions: 64,
    },
    headDim: 16,
    theta: 500_000,
    frequencies: [
      1, 0.079403013, 0.0047007538, 0.00091158313, 0.00017677668, 3.4281024e-5, 6.6478697e-6,
      1.2891732e-6,
    ],
  },
  {
    scaling: { ...yarn, factor: 4, originalPositions: 32_768, attentionFactor: 1.1386294 },
    headDim: 32,
    theta: 1_000_000,
    frequencies: [
      1, 0.42169651, 0.17782794, 0.074989416, 0.031622779, 0.013335215, 0.0047799014, 0.0016599617,
      0.00055, 0.00016867858, 4.4456985e-5, 1.8747356e-5, 7.9056936e-6, 3.3338035e-6, 1.4058534e-6,
      5.9284343e-7,
    ],
  },
  {
    scaling: {
      ...yarn,
      ...{ betaFast: 16, betaSlow: 2, truncate: false },
      ...{ factor: 4, originalPositions: 4096, attentionFactor: 1 },
    },
    headDim: 32,
    theta: 10_000,
    frequencies: [
      1, 0.56234133, 0.31622776, 0.17782794, 0.1, 0.056234129, 0.031622779, 0.015716122,
      0.0067616189, 0.0026348021, 0.00082510448, 0.00044456986, 0.00025000001, 0.00014058533,
      7.9056947e-5, 4.4456985e-5,
    ],
  },
  {
    // The ramp has no width.
    scaling: { ...yarn, factor: 16, originalPositions: 16, attentionFactor: 1.25 },
    headDim: 16,
    theta: 1_000_000,
    frequencies: [
      1, 0.011114246, 0.0019764237, 0.00035146333, 6.2500003e-5, 1.1114246e-5, 1.9764234e-6,
      3.5146334e-7,
    ],
  },
];

test.each(REFERENCES)("frequencies of %j", ({ scaling, headDim, theta, frequencies }) => {
  const rope = scaledRope(headDim, theta, scaling);
  expect(rope.frequencies).toHaveLength(headDim / 2);
  rope.frequencies.forEach((frequency, pair) => {
    expect(Math.abs(frequency / frequencies[pair]! - 1)).toBeLessThan(1e-6);
  });
  expect(rope.factor).toBe(scaling.kind === "yarn" ? scaling.attentionFactor : undefined);
});

test("the factor on queries and keys", () => {
  expect(yarnMagnitude(4)).toBeCloseTo(1.138629436111989, 12);
  expect(yarnMagnitude(16, 0.7) / yarnMagnitude(16, 1)).toBeCloseTo(0.9348779926481438, 12);
  expect(yarnMagnitude(0.5)).toBe(1);
});

test("queries grow at every multiple of the original length", () => {
  const scaling = { ...yarn, factor: 4, originalPositions: 16, attentionFactor: 1 };
  const { queryFactor } = scaledRope(16, 1e6, { ...scaling, queryGrowth: 0.1 });
  const factors = [0, 15, 16, 31, 32].map((position) => queryFactor!(position));
  const [second, third] = [1 + 0.1 * Math.log(2), 1 + 0.1 * Math.log(3)];
  expect(factors).toEqual([1, 1, second, second, third]);
  expect(scaledRope(16, 1e6, scaling).queryFactor).toBeUndefined();
});
