import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { attention, type AttentionShape } from "./attention.ts";
import { blockAttention } from "./block-attention.ts";
import type { Mask } from "./ragged.ts";
import { RowLayout, rowStarts } from "./row-layout.ts";

mx.openDevice("cpu");

const HEAD_DIM = 4;
const SCALE = 0.5;
const LENGTHS = Int32Array.of(1, 40, 12, 3, 40, 11, 90);
const TOTAL = LENGTHS.reduce((a, b) => a + b, 0);
const SPAN = 95;
const DISTANCE_ROWS = 9;
/** [2 * SPAN - 1] at key - query + SPAN - 1. */
const rowOfDistance = Int32Array.from({ length: 2 * SPAN - 1 }, (_, i) =>
  Math.min(Math.max(Math.round((i - SPAN + 1) / 3) + 4, 0), DISTANCE_ROWS - 1),
);

interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
}

/** Which keys count, and what is added to their scores. */
interface Kind {
  readonly mask: Mask;
  readonly attended?: Int32Array;
  /** [heads, 2 * SPAN - 1] */
  readonly relativeBias?: (heads: number) => Float32Array;
  /** [DISTANCE_ROWS, heads * HEAD_DIM] each. */
  readonly distances?: (heads: number) => DistanceTables;
}

interface DistanceTables {
  readonly keys: Float32Array;
  readonly queries: Float32Array;
}

function values(features: number, seed: number): Float32Array {
  return Float32Array.from({ length: TOTAL * features }, (_, i) => Math.sin(seed + i * 1.7) * 2);
}

function sees(mask: Mask, query: number, key: number): boolean {
  const distance = query - key;
  if (mask.kind === "full") return true;
  if (mask.kind === "window") return Math.abs(distance) <= mask.radius;
  return distance >= 0 && distance < (mask.window ?? Infinity);
}

interface Inputs {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
}

/** softmax(q·k · scale + bias) v, one query at a time, in f64. */
function attendByHand({ q, k, v }: Inputs, { heads, kvHeads }: Heads, kind: Kind): Float64Array {
  const out = new Float64Array(TOTAL * heads * HEAD_DIM);
  const at = (token: number, count: number, head: number) => (token * count + head) * HEAD_DIM;
  const bias = kind.relativeBias?.(heads);
  const distances = kind.distances?.(heads);
  rowStarts(LENGTHS).forEach((start, row) => {
    const attended = kind.attended?.[row] ?? LENGTHS[row]!;
    for (let query = 0; query < LENGTHS[row]!; query++) {
      for (let head = 0; head < heads; head++) {
        const kvHead = Math.floor((head * kvHeads) / heads);
        const own = at(start + query, heads, head);
        const keys = Array.from({ length: attended }, (_, key) => key).filter((key) =>
          sees(kind.mask, query, key),
        );
        const weights = keys.map((key) => {
          const other = at(start + key, kvHeads, kvHead);
          let score = 0;
          for (let d = 0; d < HEAD_DIM; d++) score += q[own + d]! * k[other + d]!;
          const place = at(rowOfDistance[key - query + SPAN - 1]!, heads, head);
          for (let d = 0; distances && d < HEAD_DIM; d++) {
            score += q[own + d]! * distances.keys[place + d]!;
            score += k[other + d]! * distances.queries[place + d]!;
          }
          const added = bias ? bias[head * (2 * SPAN - 1) + key - query + SPAN - 1]! : 0;
          return Math.exp(score * SCALE + added);
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

type Build = typeof attention | typeof blockAttention;

function attend(build: Build, { q, k, v }: Inputs, { heads, kvHeads }: Heads, kind: Kind) {
  return mx.scope(() => {
    const bias = kind.relativeBias?.(heads);
    const tables = kind.distances?.(heads);
    const ofDistances = (table: Float32Array) =>
      mx.fromFloat32(table, [DISTANCE_ROWS, heads * HEAD_DIM]);
    const shape: AttentionShape = {
      ...{ heads, kvHeads, scale: SCALE, mask: kind.mask },
      relativeBias: bias && mx.fromFloat32(bias, [heads, 2 * SPAN - 1]),
      distances: tables && {
        keys: ofDistances(tables.keys),
        queries: ofDistances(tables.queries),
        rows: rowOfDistance,
      },
    };
    const run = build(new RowLayout({ lengths: LENGTHS, attended: kind.attended }), shape);
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
  { kind: "causal", window: 1 },
  { kind: "causal", window: 7 },
  { kind: "causal", window: 1000 },
  { kind: "window", radius: 0 },
  { kind: "window", radius: 5 },
  { kind: "window", radius: 1000 },
];
const attended = Int32Array.of(1, 38, 8, 1, 40, 9, 85);
const relativeBias = (heads: number) =>
  Float32Array.from({ length: heads * (2 * SPAN - 1) }, (_, i) => Math.cos(i * 1.3) * 3);
const distances = (heads: number): DistanceTables => {
  const table = (seed: number) =>
    Float32Array.from({ length: DISTANCE_ROWS * heads * HEAD_DIM }, (_, i) =>
      Math.sin(seed + i * 2.3),
    );
  return { keys: table(1), queries: table(2) };
};
const KINDS: readonly Kind[] = [
  ...MASKS.map((mask) => ({ mask })),
  { mask: { kind: "full" }, attended },
  { mask: { kind: "causal" }, attended },
  { mask: { kind: "window", radius: 5 }, attended },
  { mask: { kind: "full" }, relativeBias },
  { mask: { kind: "causal", window: 9 }, relativeBias },
  { mask: { kind: "full" }, attended, relativeBias },
  { mask: { kind: "full" }, distances },
  { mask: { kind: "full" }, attended, distances },
];
const HEADS: readonly Heads[] = [
  { heads: 2, kvHeads: 2 },
  { heads: 6, kvHeads: 2 },
  { heads: 4, kvHeads: 1 },
];

const nameOf = ({ mask, ...rest }: Kind) =>
  [JSON.stringify(mask), ...Object.keys(rest)].join(" and ");

describe.each([
  ["attention", attention],
  ["attention on blocks", blockAttention],
] as const)("%s", (_, build) => {
  describe.each(KINDS.map((kind) => [nameOf(kind), kind] as const))("%s", (_, kind) => {
    // Distances are for as many key/value heads as heads.
    const headsOfKind = kind.distances ? HEADS.slice(0, 1) : HEADS;
    test.each(headsOfKind)("a row sees only itself, $heads heads on $kvHeads", (heads) => {
      const x = inputs(heads);
      const actual = attend(build, x, heads, kind);
      attendByHand(x, heads, kind).forEach((wanted, i) => {
        expect(Math.abs(actual[i]! - wanted)).toBeLessThan(3e-6);
      });
    });

    test("a row of NaN stays in its row", () => {
      const heads = { heads: 2, kvHeads: 2 };
      const x = inputs(heads);
      const width = heads.heads * HEAD_DIM;
      const [from, to] = [1, 41].map((token) => token * width);
      for (const tensor of [x.q, x.k, x.v]) tensor.fill(Number.NaN, from, to);
      attend(build, x, heads, kind).forEach((value, i) => {
        expect(Number.isNaN(value)).toBe(i >= from! && i < to!);
      });
    });

    test("huge scores stay finite", () => {
      const heads = { heads: 2, kvHeads: 2 };
      const { q, k, v } = inputs(heads);
      const huge = { q: q.map((x) => x * 1e6), k: k.map((x) => x * 1e6), v };
      expect(attend(build, huge, heads, kind).every(Number.isFinite)).toBe(true);
    });
  });
});

test("what leaves a query without a key is refused, and so is a bias for shorter rows", () => {
  mx.scope(() => {
    const layout = new RowLayout({ lengths: Int32Array.of(2, 9), attended: Int32Array.of(1, 4) });
    const shape = { heads: 1, kvHeads: 1, scale: SCALE };
    const build = (mask: Mask) => attention(layout, { ...shape, mask });
    expect(() => build({ kind: "window", radius: 4 })).toThrow(/row 1/);
    expect(() => build({ kind: "causal", window: 5 })).toThrow(/row 1/);
    build({ kind: "window", radius: 5 });
    expect(() => build({ kind: "causal", window: 0 })).toThrow(RangeError);
    const table = mx.zeros([1, HEAD_DIM]);
    const distances = { keys: table, queries: table, rows: new Int32Array(17) };
    expect(() => attention(layout, { ...shape, mask: { kind: "causal" }, distances })).toThrow(
      "scores with distances need a mask that shows all keys",
    );
    const short = { ...shape, mask: { kind: "full" } as const, relativeBias: mx.zeros([1, 15]) };
    const x = mx.zeros([11, HEAD_DIM]);
    expect(() => attention(layout, short)(x, x, x)).toThrow("rows of 8 tokens, not of 9");
    expect(() => blockAttention(layout, short)(x, x, x)).toThrow("rows of 8 tokens, not of 9");
  });
});

test.each([
  { kind: "causal", window: 600 },
  { kind: "causal", window: 100 },
  { kind: "window", radius: 40 },
  { kind: "window", radius: 700 },
] as const)("long rows in parts are as one whole: %j", (mask) => {
  const [length, heads] = [1300, 2];
  const [plain, parts] = mx.scope(() => {
    const x = Float32Array.from({ length: length * heads * HEAD_DIM }, (_, i) => Math.sin(i * 1.7));
    const q = mx.fromFloat32(x, [length, heads * HEAD_DIM]);
    const layout = new RowLayout({ lengths: Int32Array.of(length) });
    const shape = { heads, kvHeads: heads, scale: SCALE };
    const parts = blockAttention(layout, { ...shape, mask })(q, q, q).toFloat32();
    return [attendRowByRow([[q, q, q]], { heads, kvHeads: heads }, mask), parts];
  });
  parts!.forEach((value, i) => expect(Math.abs(value - plain![i]!)).toBeLessThan(1e-6));
});

/** Whole rows, one at a time, without buckets or parts: [N, heads * HEAD_DIM]. */
function attendRowByRow(
  rows: readonly mx.Tensor[][],
  { heads, kvHeads }: Heads,
  mask: Mask,
): Float32Array {
  const split = (x: mx.Tensor, count: number) =>
    mx.transpose(mx.reshape(x, [1, x.shape[0]!, count, HEAD_DIM]), [0, 2, 1, 3]);
  const outputs = rows.map(([q, k, v]) => {
    const [keys, vals] = [split(k!, kvHeads), split(v!, kvHeads)];
    const [count, own] = [k!.shape[0]!, q!.shape[0]!];
    const hidden = Float32Array.from({ length: own * count }, (_, i) =>
      sees(mask, count - own + Math.floor(i / count), i % count) ? 0 : -Infinity,
    );
    const added = { mask: mx.fromFloat32(hidden, [1, 1, own, count]) };
    const out = mx.scaledDotProductAttention(split(q!, heads), keys, vals, SCALE, added);
    return mx.reshape(mx.transpose(out, [0, 2, 1, 3]), [q!.shape[0]!, heads * HEAD_DIM]);
  });
  return mx.concatenate(outputs, 0).toFloat32();
}

describe.each(
  [attention, blockAttention].flatMap((build) =>
    [undefined, 1, 9, 600].map((window) => ({ build, window, name: build.name })),
  ),
)("causal rows that continue a past, $name with window $window", ({ build, window }) => {
  const mask: Mask = { kind: "causal", window };
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
      const layout = new RowLayout({ lengths: Int32Array.from(lengths) });
      const run = build(layout, { ...shape, scale: SCALE, mask });
      const past = before && { keys: before[1]!, values: before[2]! };
      const whole = own.map((row) =>
        row.map((x, i) => (before && i > 0 ? mx.concatenate([before[i]!, x], 0) : x)),
      );
      return {
        actual: run(q!, k!, v!, past).toFloat32(),
        wanted: attendRowByRow(whole, shape, mask),
      };
    });
    expect(actual.length).toBe(wanted.length);
    actual.forEach((value, i) => expect(Math.abs(value - wanted[i]!)).toBeLessThan(1e-5));
  });
});

test.each(MASKS.filter(({ kind }) => kind !== "causal"))("no past with the mask %j", (mask) => {
  mx.scope(() => {
    const layout = new RowLayout({ lengths: Int32Array.of(2) });
    const run = attention(layout, { heads: 1, kvHeads: 1, scale: SCALE, mask });
    const x = mx.zeros([2, HEAD_DIM]);
    expect(() => run(x, x, x, { keys: x, values: x })).toThrow(RangeError);
  });
});

test("heads too wide for the kernels are attended to on blocks", () => {
  mx.scope(() => {
    const wide = mx.MAX_KERNEL_HEAD_DIM + 8;
    const values = Float32Array.from({ length: 5 * wide }, (_, i) => Math.sin(i));
    const [layout, x] = [
      new RowLayout({ lengths: Int32Array.of(5) }),
      mx.fromFloat32(values, [5, wide]),
    ];
    const shape: AttentionShape = { heads: 1, kvHeads: 1, scale: 0.1, mask: { kind: "full" } };
    const wanted = blockAttention(layout, shape)(x, x, x).toFloat32();
    expect(attention(layout, shape)(x, x, x).toFloat32()).toEqual(wanted);
  });
});
