import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { attention } from "./attention.ts";
import type { Mask } from "./ragged.ts";
import { RowLayout, rowStarts } from "./row-layout.ts";

mx.openDevice("cpu");

const HEAD_DIM = 4;
const SCALE = 0.5;
const LENGTHS = Int32Array.of(1, 40, 12, 3, 40, 11, 90);
const TOTAL = LENGTHS.reduce((a, b) => a + b, 0);

interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
}

function values(features: number, seed: number): Float32Array {
  return Float32Array.from({ length: TOTAL * features }, (_, i) => Math.sin(seed + i * 1.7) * 2);
}

function sees(mask: Mask, query: number, key: number): boolean {
  if (mask.kind === "causal") return key <= query;
  return mask.kind === "full" || Math.abs(query - key) <= mask.radius;
}

interface Inputs {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
}

/** softmax(q·k · scale) v, one query at a time, in f64. */
function attendByHand({ q, k, v }: Inputs, { heads, kvHeads }: Heads, mask: Mask): Float64Array {
  const out = new Float64Array(TOTAL * heads * HEAD_DIM);
  const at = (token: number, count: number, head: number) => (token * count + head) * HEAD_DIM;
  rowStarts(LENGTHS).forEach((start, row) => {
    for (let query = 0; query < LENGTHS[row]!; query++) {
      for (let head = 0; head < heads; head++) {
        const kvHead = Math.floor((head * kvHeads) / heads);
        const own = at(start + query, heads, head);
        const keys = Array.from({ length: LENGTHS[row]! }, (_, key) => key).filter((key) =>
          sees(mask, query, key),
        );
        const weights = keys.map((key) => {
          const other = at(start + key, kvHeads, kvHead);
          let score = 0;
          for (let d = 0; d < HEAD_DIM; d++) score += q[own + d]! * k[other + d]!;
          return Math.exp(score * SCALE);
        });
        const total = weights.reduce((a, b) => a + b, 0);
        keys.forEach((key, i) => {
          const other = at(start + key, kvHeads, kvHead);
          for (let d = 0; d < HEAD_DIM; d++) out[own + d]! += (weights[i]! / total) * v[other + d]!;
        });
      }
    }
  });
  return out;
}

function attend({ q, k, v }: Inputs, { heads, kvHeads }: Heads, mask: Mask): Float32Array {
  return mx.scope(() => {
    const run = attention(new RowLayout(LENGTHS), { heads, kvHeads, scale: SCALE, mask });
    const queries = mx.fromFloat32(q, [TOTAL, heads * HEAD_DIM]);
    const [keys, vals] = [k, v].map((x) => mx.fromFloat32(x, [TOTAL, kvHeads * HEAD_DIM]));
    return run(queries, keys!, vals!).toFloat32();
  });
}

function inputs({ heads, kvHeads }: Heads): Inputs {
  const [q, k, v] = [heads, kvHeads, kvHeads].map((count, i) => values(count * HEAD_DIM, i));
  return { q: q!, k: k!, v: v! };
}

const MASKS: readonly Mask[] = [
  { kind: "full" },
  { kind: "causal" },
  { kind: "window", radius: 0 },
  { kind: "window", radius: 5 },
  { kind: "window", radius: 1000 },
];
const HEADS: readonly Heads[] = [
  { heads: 2, kvHeads: 2 },
  { heads: 6, kvHeads: 2 },
  { heads: 4, kvHeads: 1 },
];

function maskName(mask: Mask): string {
  return mask.kind === "window" ? `window of radius ${mask.radius}` : mask.kind;
}

describe.each(MASKS.map((mask) => [maskName(mask), mask] as const))("%s", (_, mask) => {
  test.each(HEADS)("a row sees only itself, $heads heads on $kvHeads", (heads) => {
    const x = inputs(heads);
    const actual = attend(x, heads, mask);
    attendByHand(x, heads, mask).forEach((wanted, i) => expect(actual[i]).toBeCloseTo(wanted, 5));
  });

  test("a row of NaN stays in its row", () => {
    const heads = { heads: 2, kvHeads: 2 };
    const x = inputs(heads);
    const width = heads.heads * HEAD_DIM;
    const [from, to] = [1, 41].map((token) => token * width);
    for (const tensor of [x.q, x.k, x.v]) tensor.fill(Number.NaN, from, to);
    attend(x, heads, mask).forEach((value, i) => {
      expect(Number.isNaN(value)).toBe(i >= from! && i < to!);
    });
  });

  test("huge scores stay finite", () => {
    const heads = { heads: 2, kvHeads: 2 };
    const { q, k, v } = inputs(heads);
    const huge = attend({ q: q.map((x) => x * 1e6), k: k.map((x) => x * 1e6), v }, heads, mask);
    expect(huge.every(Number.isFinite)).toBe(true);
  });
});

/** Whole rows, one at a time, without buckets or parts: [N, heads * HEAD_DIM]. */
function attendRowByRow(rows: readonly mx.Tensor[][], { heads, kvHeads }: Heads): Float32Array {
  const split = (x: mx.Tensor, count: number) =>
    mx.transpose(mx.reshape(x, [1, x.shape[0]!, count, HEAD_DIM]), [0, 2, 1, 3]);
  const outputs = rows.map(([q, k, v]) => {
    const [keys, vals] = [split(k!, kvHeads), split(v!, kvHeads)];
    const out = mx.scaledDotProductAttention(split(q!, heads), keys, vals, SCALE, { causal: true });
    return mx.reshape(mx.transpose(out, [0, 2, 1, 3]), [q!.shape[0]!, heads * HEAD_DIM]);
  });
  return mx.concatenate(outputs, 0).toFloat32();
}

describe("causal rows that continue a past", () => {
  test.each([
    [1, [5]],
    [7, [1, 40, 12, 3, 40]],
    [600, [1, 30]],
    [3, [1100, 2, 512, 513]],
    [0, [1100, 2]],
  ] as const)("of %d tokens, rows of %j: as if each ran whole", (pastLength, lengths) => {
    const shape: Heads = { heads: 4, kvHeads: 2 };
    const widths = [shape.heads, shape.kvHeads, shape.kvHeads].map((count) => count * HEAD_DIM);
    const tensors = (length: number, seed: number) =>
      widths.map((width, i) =>
        mx.fromFloat32(
          Float32Array.from({ length: length * width }, (_, j) => Math.sin(seed + i + j * 1.7) * 2),
          [length, width],
        ),
      );
    const { actual, wanted } = mx.scope(() => {
      const before = pastLength > 0 ? tensors(pastLength, 100) : undefined;
      const own = lengths.map((length, row) => tensors(length, row));
      const [q, k, v] = widths.map((_, i) =>
        mx.concatenate(
          own.map((row) => row[i]!),
          0,
        ),
      );
      const run = attention(new RowLayout(Int32Array.from(lengths)), {
        ...shape,
        scale: SCALE,
        mask: { kind: "causal" },
      });
      const past = before && { keys: before[1]!, values: before[2]! };
      const whole = own.map((row) =>
        row.map((x, i) => (before && i > 0 ? mx.concatenate([before[i]!, x], 0) : x)),
      );
      return {
        actual: run(q!, k!, v!, past).toFloat32(),
        wanted: attendRowByRow(whole, shape),
      };
    });
    expect(actual.length).toBe(wanted.length);
    actual.forEach((value, i) => expect(Math.abs(value - wanted[i]!)).toBeLessThan(1e-5));
  });

  test.each(MASKS.filter(({ kind }) => kind !== "causal"))("not with the mask %j", (mask) => {
    mx.scope(() => {
      const layout = new RowLayout(Int32Array.of(2));
      const run = attention(layout, { heads: 1, kvHeads: 1, scale: SCALE, mask });
      const x = mx.zeros([2, HEAD_DIM]);
      expect(() => run(x, x, x, { keys: x, values: x })).toThrow(RangeError);
    });
  });
});
