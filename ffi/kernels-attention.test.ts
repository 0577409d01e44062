import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";
import {
  instructionSets,
  kernels,
  layer,
  matrix,
  numbers,
  runWith,
  worst,
} from "./testing/kernels.ts";

describe.skipIf(!kernels).each(instructionSets)("attention for %s", (name) => {
  const run = <T>(body: (k: mx.Kernels) => T) => runWith(name, body);

  interface Case {
    readonly lengths: readonly number[];
    readonly heads: number;
    readonly kvHeads: number;
    readonly headDim: number;
    readonly causal?: boolean;
    readonly radius?: number;
    readonly past?: number;
    readonly attended?: readonly number[];
    /** Longest row that there are biases for. */
    readonly span?: number;
    /** Longest row that there are distances for. */
    readonly reach?: number;
  }

  /** Rows of the tables of distances: fewer than there are distances. */
  const DISTANCE_ROWS = 40;

  function distancesOf({ reach, heads, headDim }: Case): mx.Distances | undefined {
    if (!reach) return undefined;
    // Those of other heads lie beside them, as where a layer yields both tables at once.
    const width = heads * headDim;
    const [keys, queries] = mx.split(matrix(DISTANCE_ROWS, 2 * width, 7), 2, 1);
    const rows = Int32Array.from({ length: 2 * reach - 1 }, (_, i) =>
      Math.min(Math.max(i - reach + 20, 0), DISTANCE_ROWS - 1),
    );
    return { keys: keys!, queries: queries!, rows };
  }

  /** [heads, length, length]: (query · keys[row] + key · queries[row]) · scale */
  function distanceScores(q: mx.Tensor, k: mx.Tensor, c: Case): Float32Array | undefined {
    const distances = distancesOf(c);
    if (!distances) return undefined;
    const [length, { heads, headDim }] = [q.shape[0]!, c];
    const middle = (distances.rows.length - 1) / 2;
    // [n, heads * headDim] -> [heads, n, headDim]
    const head = (x: mx.Tensor) =>
      mx.transpose(mx.reshape(x, [x.shape[0]!, heads, headDim]), [1, 0, 2]);
    const product = (a: mx.Tensor, b: mx.Tensor) =>
      mx.matmul(head(a), mx.transpose(head(b), [0, 2, 1])).toFloat32();
    const ofQueries = product(q, distances.keys);
    const ofKeys = product(k, distances.queries);
    return Float32Array.from({ length: heads * length * length }, (_, i) => {
      const [query, key] = [Math.floor(i / length) % length, i % length];
      const head = Math.floor(i / (length * length)) * length;
      const row = distances.rows[key - query + middle]!;
      const sum =
        ofQueries[(head + query) * DISTANCE_ROWS + row]! +
        ofKeys[(head + key) * DISTANCE_ROWS + row]!;
      return sum / Math.sqrt(headDim);
    });
  }

  /** [heads, 2 * span - 1] */
  const biases = ({ span, heads }: Case) => (span ? numbers(heads * (2 * span - 1), 6) : undefined);

  /** Each row alone, by mlx's own attention. */
  function plain(qkv: readonly mx.Tensor[], past: readonly mx.Tensor[], c: Case): Float32Array {
    const head = (x: mx.Tensor, count: number) =>
      mx.transpose(mx.reshape(x, [1, x.shape[0]!, count, c.headDim]), [0, 2, 1, 3]);
    let start = 0;
    const bias = biases(c);
    const outputs = c.lengths.map((length, row) => {
      const [q, k, v] = qkv.map((x) => mx.slice(x, [start, 0], [start + length, x.shape[1]!])) as [
        mx.Tensor,
        mx.Tensor,
        mx.Tensor,
      ];
      start += length;
      const [keys, values] =
        past.length > 0
          ? [mx.concatenate([past[0]!, k], 0), mx.concatenate([past[1]!, v], 0)]
          : [k, v];
      const count = keys.shape[0]!;
      const earlier = count - length;
      const scores = distanceScores(q, k, c);
      const mask = Float32Array.from({ length: c.heads * length * count }, (_, i) => {
        const head = Math.floor(i / (length * count));
        const [query, key] = [earlier + (Math.floor(i / count) % length), i % count];
        const seen =
          (!c.causal || key <= query) &&
          (c.radius === undefined || Math.abs(key - query) <= c.radius) &&
          key < earlier + (c.attended?.[row] ?? length);
        if (!seen) return -Infinity;
        const added = scores?.[i] ?? 0;
        if (!bias || !c.span) return added;
        return added + bias[head * (2 * c.span - 1) + key - query + c.span - 1]!;
      });
      const out = mx.scaledDotProductAttention(
        head(q, c.heads),
        head(keys, c.kvHeads),
        head(values, c.kvHeads),
        1 / Math.sqrt(c.headDim),
        { mask: mx.fromFloat32(mask, [1, c.heads, length, count]) },
      );
      return mx.reshape(mx.transpose(out, [0, 2, 1, 3]), [length, c.heads * c.headDim]);
    });
    return mx.concatenate(outputs, 0).toFloat32();
  }

  const rowsOf = (c: Case) => ({
    lengths: Int32Array.from(c.lengths),
    attended: c.attended && Int32Array.from(c.attended),
    relativeBias: c.span ? mx.fromFloat32(biases(c)!, [c.heads, 2 * c.span - 1]) : undefined,
    distances: distancesOf(c),
  });

  const CASES: readonly Case[] = [
    { lengths: [1], heads: 1, kvHeads: 1, headDim: 4 },
    { lengths: [8, 3, 1], heads: 2, kvHeads: 2, headDim: 32 },
    { lengths: [130, 7, 64], heads: 3, kvHeads: 3, headDim: 64 },
    { lengths: [20, 61], heads: 4, kvHeads: 2, headDim: 96 },
    { lengths: [33], heads: 4, kvHeads: 1, headDim: 128 },
    { lengths: [17, 5], heads: 2, kvHeads: 1, headDim: 20 },
    { lengths: [600, 513], heads: 1, kvHeads: 1, headDim: 32 },
    { lengths: [1, 9, 70], heads: 2, kvHeads: 2, headDim: 32, causal: true },
    { lengths: [1100, 3], heads: 2, kvHeads: 1, headDim: 64, causal: true },
    { lengths: [90, 1, 4], heads: 2, kvHeads: 2, headDim: 64, radius: 0 },
    { lengths: [90, 1, 700], heads: 2, kvHeads: 2, headDim: 64, radius: 5 },
    { lengths: [300], heads: 1, kvHeads: 1, headDim: 64, radius: 64 },
    { lengths: [300, 30], heads: 1, kvHeads: 1, headDim: 32, radius: 7, causal: true },
    { lengths: [5, 1, 40], heads: 4, kvHeads: 2, headDim: 32, causal: true, past: 9 },
    { lengths: [5, 300], heads: 2, kvHeads: 2, headDim: 128, causal: true, past: 700 },
    { lengths: [5, 1, 40], heads: 4, kvHeads: 2, headDim: 32, causal: true, past: 9, radius: 6 },
    { lengths: [5, 300], heads: 2, kvHeads: 1, headDim: 64, causal: true, past: 700, radius: 511 },
    { lengths: [33, 2], heads: 2, kvHeads: 1, headDim: 256 },
    { lengths: [21], heads: 1, kvHeads: 1, headDim: 512, causal: true },
    { lengths: [32, 1, 9], heads: 2, kvHeads: 2, headDim: 32, attended: [7, 1, 9] },
    { lengths: [600, 3], heads: 2, kvHeads: 1, headDim: 32, attended: [511, 2] },
    { lengths: [40, 3], heads: 2, kvHeads: 1, headDim: 32, attended: [30, 1], radius: 11 },
    { lengths: [12, 5], heads: 2, kvHeads: 1, headDim: 32, attended: [3, 5], causal: true },
    { lengths: [1], heads: 3, kvHeads: 3, headDim: 32, span: 1 },
    { lengths: [13, 1, 70], heads: 4, kvHeads: 2, headDim: 32, span: 70 },
    { lengths: [600, 513], heads: 2, kvHeads: 2, headDim: 32, span: 1000 },
    { lengths: [90], heads: 2, kvHeads: 2, headDim: 20, span: 91, radius: 9 },
    { lengths: [50, 7], heads: 6, kvHeads: 2, headDim: 64, span: 60, attended: [41, 6] },
    { lengths: [5, 30], heads: 2, kvHeads: 2, headDim: 64, span: 73, causal: true, past: 43 },
    { lengths: [1], heads: 1, kvHeads: 1, headDim: 12, reach: 1 },
    { lengths: [2, 0, 1], heads: 2, kvHeads: 2, headDim: 64, reach: 3 },
    { lengths: [13, 1, 0, 70, 33], heads: 4, kvHeads: 4, headDim: 32, reach: 70 },
    { lengths: [600, 513, 29], heads: 2, kvHeads: 2, headDim: 20, reach: 700 },
    { lengths: [50, 7], heads: 3, kvHeads: 3, headDim: 64, reach: 50, attended: [17, 6] },
    { lengths: [530], heads: 2, kvHeads: 2, headDim: 12, reach: 530, attended: [521] },
    { lengths: [90, 31], heads: 2, kvHeads: 2, headDim: 36, reach: 91, span: 90, radius: 9 },
    { lengths: [21, 300], heads: 1, kvHeads: 1, headDim: 65, reach: 300, causal: true },
  ];

  test.each(CASES)("%j", (c) => {
    run((k) => {
      const total = c.lengths.reduce((a, b) => a + b, 0);
      const kvWidth = c.kvHeads * c.headDim;
      const qkv = [c.heads * c.headDim, kvWidth, kvWidth].map((width, i) =>
        matrix(total, width, i + 1, 2),
      );
      const past = c.past ? [matrix(c.past, kvWidth, 4, 2), matrix(c.past, kvWidth, 5, 2)] : [];
      const actual = k.attention(qkv[0]!, qkv[1]!, qkv[2]!, {
        ...c,
        ...rowsOf(c),
        scale: 1 / Math.sqrt(c.headDim),
        past: c.past ? { keys: past[0]!, values: past[1]! } : undefined,
      });
      expect(worst(actual.toFloat32(), plain(qkv, past, c))).toBeLessThan(2e-6);
    });
  });

  test("refuses rows without keys, and biases for shorter rows or fewer heads", () => {
    run((k) => {
      const x = matrix(9, 64, 1);
      const attend = (rows: object) =>
        k.attention(x, x, x, {
          ...{ lengths: Int32Array.of(9), heads: 2, kvHeads: 2, scale: 1, ...rows },
        });
      for (const attended of [0, 10]) {
        expect(() => attend({ attended: Int32Array.of(attended) })).toThrow("at least one token");
      }
      expect(() => attend({ attended: Int32Array.of(4), radius: 4 })).toThrow("would see none");
      expect(() => attend({ relativeBias: matrix(2, 15, 1) })).toThrow(
        "rows of 8 tokens, not of 9",
      );
      expect(() => attend({ relativeBias: matrix(1, 17, 1) })).toThrow("for each head");
      expect(() => attend({ relativeBias: matrix(2, 18, 1) })).toThrow("odd number of columns");
    });
  });

  test("refuses distances that are too few, of other heads or not in the tables", () => {
    run((k) => {
      const x = matrix(9, 64, 1);
      const table = matrix(5, 64, 2);
      const attend = (distances: object, rows: object = {}) =>
        k.attention(x, x, x, {
          ...{ lengths: Int32Array.of(9), heads: 2, kvHeads: 2, scale: 1, ...rows },
          distances: { keys: table, queries: table, rows: new Int32Array(17), ...distances },
        });
      attend({});
      const bad: readonly [object, string][] = [
        [{ rows: new Int32Array(15) }, "rows of 8 tokens, not of 9"],
        [{ rows: new Int32Array(18) }, "odd number"],
        [{ rows: new Int32Array(17).fill(5) }, "5 is not a row"],
        [{ rows: new Int32Array(17).fill(-1) }, "-1 is not a row"],
        [{ rows: new Int32Array() }, "belong together"],
        [{ keys: undefined }, "belong together"],
        [{ queries: matrix(4, 64, 2) }, "the same rows"],
        [{ keys: matrix(5, 32, 2) }, "the head size of q"],
      ];
      for (const [distances, message] of bad) expect(() => attend(distances)).toThrow(message);
      const past = { keys: table, values: table };
      expect(() => attend({}, { causal: true, past })).toThrow("no past");
      const few = matrix(9, 32, 1);
      const rows = { lengths: Int32Array.of(9), heads: 2, kvHeads: 1, scale: 1 };
      const distances = { keys: table, queries: table, rows: new Int32Array(17) };
      expect(() => k.attention(x, few, few, { ...rows, distances })).toThrow("as many kv_heads");
    });
  });

  test("reads q, k and v in the columns of one matrix", () => {
    run((k) => {
      const [q, keys, values] = mx.split(matrix(12, 3 * 64, 1), 3, 1);
      const rows = { lengths: Int32Array.of(5, 7), heads: 2, kvHeads: 2, scale: 0.2 };
      const apart = [q!, keys!, values!].map((x) => mx.contiguous(x));
      const actual = k.attention(q!, keys!, values!, rows).toFloat32();
      expect(actual).toEqual(k.attention(apart[0]!, apart[1]!, apart[2]!, rows).toFloat32());
    });
  });

  describe.each([
    // with AVX-512: whole panels of the projections for each head, for all heads only, and not even then
    { heads: 4, headDim: 32 },
    { heads: 4, headDim: 24 },
    { heads: 3, headDim: 20 },
  ])("self-attention of $heads heads of $headDim", ({ heads, headDim }) => {
    test.each([
      [[3]],
      [[40, 1, 7]],
      [Array.from({ length: 60 }, (_, i) => (i % 9) + 1)],
      [[300, 200]],
      [[30, 260, 90, 5]],
    ])("is the attention of the layer's columns: rows of %j", (lengths) => {
      run((k) => {
        const total = lengths.reduce((a, b) => a + b, 0);
        const rows = { lengths: Int32Array.from(lengths), heads, scale: 0.3 };
        const x = matrix(total, 50, 1);
        const { packed } = layer(k, 50, 3 * heads * headDim, 2);
        const span = Math.max(...lengths);
        const relativeBias = matrix(heads, 2 * span - 1, 4);
        const attended = rows.lengths.map((length) => Math.ceil(length / 2));
        const distances = {
          ...{ keys: matrix(7, heads * headDim, 5), queries: matrix(7, heads * headDim, 6) },
          rows: Int32Array.from({ length: 2 * span - 1 }, (_, i) => i % 7),
        };
        const masks = [{ causal: true }, { radius: 4 }, { relativeBias }, { attended }];
        for (const mask of [{}, ...masks, { distances }]) {
          const [q, keys, values] = mx.split(k.linear(x, packed), 3, 1);
          const wanted = k.attention(q!, keys!, values!, { ...rows, kvHeads: heads, ...mask });
          const actual = k.selfAttention(x, packed, { ...rows, ...mask });
          expect(actual.toFloat32()).toEqual(wanted.toFloat32());
        }
      });
    });
  });

  test("NaN stays in its row, huge scores stay finite, an infinite one does not", () => {
    run((k) => {
      const rows = { lengths: Int32Array.of(3, 20, 2), heads: 2, kvHeads: 2, scale: 0.5 };
      const attend = (x: mx.Tensor) => k.attention(x, x, x, rows).toFloat32();
      const values = numbers(25 * 64, 1);
      values.fill(Number.NaN, 3 * 64, 23 * 64);
      attend(mx.fromFloat32(values, [25, 64])).forEach((value, i) => {
        expect(Number.isNaN(value)).toBe(i >= 3 * 64 && i < 23 * 64);
      });
      expect(attend(matrix(25, 64, 2, 1e8)).every(Number.isFinite)).toBe(true);
      expect(attend(matrix(25, 64, 2, 1e25)).some(Number.isNaN)).toBe(true);
    });
  });
});
