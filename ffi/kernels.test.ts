import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";
import {
  instructionSets,
  kernels,
  layer,
  matrix,
  numbers,
  runWith,
  vector,
  worst,
} from "./testing/kernels.ts";

/** e^(t²/2) (1 - Φ(t)) for t >= 0: by Simpson's rule over e^(-t s - s²/2). */
function millsRatio(t: number): number {
  const [end, steps] = [t < 1 ? 9 : 9 / Math.max(1, t / 4), 4000];
  const f = (s: number) => Math.exp(-t * s - (s * s) / 2);
  let sum = f(0) + f(end);
  for (let i = 1; i < steps; i++) sum += f((end * i) / steps) * (i % 2 === 1 ? 4 : 2);
  return (sum * end) / steps / 3 / Math.sqrt(2 * Math.PI);
}

/** In f64, without cancellation. */
const exact: Record<Exclude<mx.ActivationKind, "identity">, (x: number) => number> = {
  gelu: (x) => {
    const tail = Math.exp((-x * x) / 2) * millsRatio(Math.abs(x));
    return x > 0 ? x * (1 - tail) : x * tail;
  },
  geluTanh: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  relu: (x) => Math.max(x, 0),
  silu: (x) => x / (1 + Math.exp(-x)),
  tanh: Math.tanh,
};
const activations = Object.keys(exact) as (keyof typeof exact)[];

const EDGES = Float32Array.of(
  ...[0, -0, 1e-45, -1e-45, 1e-40, -1e-40, 1.2e-38, -1.2e-38, 1e-20, -1e-20, 1e-5, -1e-5],
  ...[0.3, -0.3, 0.62, 0.63, -0.62, -0.63, 1, -1, 5, -5, 12, -12, 13.9, -13.9, 14.1, -14.1],
  ...[86, -86, 87, -87, 88, -88, 89, -89, 1e4, -1e4, 1e30, -1e30, 3e38, -3e38],
);
/** Exponentials below this count as 0. */
const SMALLEST_NORMAL = 1.2e-38;
const EXACTNESS = 3e-7;

const sweep = Float32Array.from([...numbers(8000, 3, 12.9), ...numbers(8000, 4, 3)]);
const geluSweep = { x: sweep, wanted: Float64Array.from(sweep, exact.gelu) };

const SHAPES = [
  { rows: 1, inputs: 1, outputs: 1 },
  { rows: 3, inputs: 5, outputs: 7 },
  { rows: 8, inputs: 384, outputs: 384 },
  { rows: 13, inputs: 33, outputs: 65 },
  { rows: 97, inputs: 64, outputs: 100 },
  { rows: 29, inputs: 1030, outputs: 50 },
  { rows: 200, inputs: 512, outputs: 96 },
];

describe.skipIf(!kernels).each(instructionSets)("kernels for %s", (name) => {
  const run = <T>(body: (k: mx.Kernels) => T) => runWith(name, body);

  /** Rounding of a sum of products grows with its length. */
  const tolerance = (inputs: number) => 2e-6 * Math.max(1, Math.sqrt(inputs) / 4);

  describe.each(SHAPES)("$rows rows, $inputs inputs, $outputs outputs", (shape) => {
    const { rows, inputs, outputs } = shape;
    const x = () => matrix(rows, inputs, 1);

    test("linear, with and without bias", () => {
      run((k) => {
        const { packed, plain } = layer(k, inputs, outputs, 2);
        const wanted = plain(x()).toFloat32();
        expect(worst(k.linear(x(), packed).toFloat32(), wanted)).toBeLessThan(tolerance(inputs));
        const bare = mx.subtract(plain(x()), packed.bias).toFloat32();
        const actual = k.linear(x(), { weight: packed.weight, outputs }).toFloat32();
        expect(worst(actual, bare)).toBeLessThan(tolerance(inputs));
      });
    });

    test.each(activations)("linear with %s: the activation of linear", (kind) => {
      run((k) => {
        const { packed } = layer(k, inputs, outputs, 2);
        const fused = k.linear(x(), packed, kind).toFloat32();
        expect(fused).toEqual(k.activate(k.linear(x(), packed), kind).toFloat32());
      });
    });

    test("linear plus residual, and its LayerNorm", () => {
      run((k) => {
        const { packed, plain } = layer(k, inputs, outputs, 3);
        const residual = matrix(rows, outputs, 5);
        const sum = mx.add(residual, plain(x()));
        const actual = k.linearResidual(x(), packed, residual).toFloat32();
        expect(worst(actual, sum.toFloat32())).toBeLessThan(tolerance(inputs));
        const weight = vector(numbers(outputs, 6));
        const bias = vector(numbers(outputs, 7));
        const normed = k.linearResidual(x(), packed, residual, { weight, bias, eps: 1e-3 });
        const wanted = mx.layerNorm(sum, weight, bias, 1e-3).toFloat32();
        expect(worst(normed.toFloat32(), wanted)).toBeLessThan(20 * tolerance(inputs));
      });
    });

    test("gated linear: the activation of one times the other", () => {
      run((k) => {
        const gate = layer(k, inputs, outputs, 8);
        const up = layer(k, inputs, outputs, 10);
        const wanted = mx.multiply(k.activate(gate.plain(x()), "silu"), up.plain(x())).toFloat32();
        const actual = k.gatedLinear(x(), gate.packed, up.packed, "silu").toFloat32();
        expect(worst(actual, wanted)).toBeLessThan(10 * tolerance(inputs));
      });
    });

    test("mlp, with and without gate and norm: the layers one after the other", () => {
      run((k) => {
        const [gate, up] = [
          layer(k, inputs, outputs, 8).packed,
          layer(k, inputs, outputs, 10).packed,
        ];
        const down = layer(k, outputs, inputs, 12).packed;
        const residual = matrix(rows, inputs, 14);
        const norm = { weight: vector(numbers(inputs, 15)), bias: down.bias, eps: 1e-5 };
        const plain = k.linear(x(), gate, "gelu");
        const gated = k.gatedLinear(x(), gate, up, "gelu");
        for (const end of [undefined, norm]) {
          const layers = { gate, down, activation: "gelu" } as const;
          expect(k.mlp(x(), layers, residual, end).toFloat32()).toEqual(
            k.linearResidual(plain, down, residual, end).toFloat32(),
          );
          expect(k.mlp(x(), { ...layers, up }, residual, end).toFloat32()).toEqual(
            k.linearResidual(gated, down, residual, end).toFloat32(),
          );
        }
      });
    });

    test("a result that takes the place of its input is the same", () => {
      run((k) => {
        const [gate, down] = [
          layer(k, inputs, outputs, 8).packed,
          layer(k, outputs, inputs, 12).packed,
        ];
        const layers = { gate, down, activation: "gelu" } as const;
        const wanted = mx.scope(() => {
          const sum = mx.add(x(), x());
          return k.mlp(sum, layers, sum).toFloat32();
        });
        // Once the scope is left nobody but the mlp needs the sum.
        const alone = mx.scope(() => {
          const sum = mx.add(x(), x());
          return k.mlp(sum, layers, sum);
        });
        expect(alone.toFloat32()).toEqual(wanted);
      });
    });

    test("a row is the same alone and among others, NaN stays in its row", () => {
      run((k) => {
        const { packed } = layer(k, inputs, outputs, 2);
        const values = numbers(rows * inputs, 1);
        const all = k.linear(mx.fromFloat32(values, [rows, inputs]), packed, "gelu").toFloat32();
        const last = mx.fromFloat32(values.slice((rows - 1) * inputs), [1, inputs]);
        const alone = k.linear(last, packed, "gelu").toFloat32();
        expect(alone).toEqual(all.slice((rows - 1) * outputs));
        values[(rows - 1) * inputs] = Number.NaN;
        const poisoned = k.linear(mx.fromFloat32(values, [rows, inputs]), packed).toFloat32();
        poisoned.forEach((value, i) => expect(Number.isNaN(value)).toBe(i >= (rows - 1) * outputs));
      });
    });
  });

  test("a linear layer reads the columns of a wider matrix in place", () => {
    run((k) => {
      const { packed, plain } = layer(k, 20, 30, 2);
      const [, middle] = mx.split(matrix(9, 60, 1), 3, 1);
      expect(worst(k.linear(middle!, packed).toFloat32(), plain(middle!).toFloat32())).toBeLessThan(
        tolerance(20),
      );
    });
  });

  test.each(activations)("%s is exact from denormals to huge numbers", (kind) => {
    run((k) => {
      const x = Float32Array.from([...EDGES, ...numbers(3000, 1, 8), ...numbers(500, 2, 90)]);
      const actual = k.activate(vector(x), kind).toFloat32();
      const wrong = [...x].flatMap((value, i) => {
        const wanted = exact[kind](value);
        // x times a share of 1: where that share is small, its error is measured against the whole.
        const size = kind.startsWith("gelu")
          ? Math.max(Math.abs(wanted), Math.abs(value) / 2)
          : Math.abs(wanted);
        const allowed = EXACTNESS * size + Math.abs(value) * SMALLEST_NORMAL + SMALLEST_NORMAL;
        return Math.abs(actual[i]! - wanted) <= allowed
          ? []
          : [{ value, wanted, actual: actual[i] }];
      });
      expect(wrong).toEqual([]);
    });
  });

  test("gelu keeps its relative exactness far below zero", () => {
    run((k) => {
      const actual = k.activate(vector(geluSweep.x), "gelu").toFloat32();
      // Without multiplications and additions that round once there is more to lose.
      const allowed = name === "baseline" ? 3.5e-7 : EXACTNESS;
      expect(worst(actual, geluSweep.wanted, SMALLEST_NORMAL)).toBeLessThan(allowed);
    });
  });

  test.each(activations)("%s of NaN is NaN", (kind) => {
    run((k) => {
      const x = vector(Float32Array.of(Number.NaN, 1, Number.NaN));
      expect([...k.activate(x, kind).toFloat32()].map(Number.isNaN)).toEqual([true, false, true]);
    });
  });

  test.each([1, 3, 16, 33, 100, 384])("norms of rows of %d", (width) => {
    run((k) => {
      const weight = vector(numbers(width, 2));
      const bias = vector(numbers(width, 3));
      for (const rows of [1, 7, 300]) {
        const x = matrix(rows, width, 1, 5);
        const layer = k.layerNorm(x, { weight, bias, eps: 1e-5 }).toFloat32();
        expect(worst(layer, mx.layerNorm(x, weight, bias, 1e-5).toFloat32())).toBeLessThan(3e-6);
        const unbiased = k.layerNorm(x, { weight, eps: 1e-5 }).toFloat32();
        expect(worst(unbiased, mx.layerNorm(x, weight, null, 1e-5).toFloat32())).toBeLessThan(3e-6);
        const rms = k.rmsNorm(x, weight, 1e-6).toFloat32();
        expect(worst(rms, mx.rmsNorm(x, weight, 1e-6).toFloat32())).toBeLessThan(1e-6);
      }
    });
  });

  test.each([2, 4, 6, 64])("rope of heads of %d, also in a slice of columns", (headDim) => {
    run((k) => {
      const [rows, heads, half] = [11, 3, headDim / 2];
      const [, x] = mx.split(matrix(rows, 2 * heads * headDim, 1), 2, 1);
      const [cos, sin] = [matrix(rows, half, 2), matrix(rows, half, 3)];
      const turned = k.rope(x!, cos, sin).toFloat32();
      const [values, c, s] = [x!.toFloat32(), cos.toFloat32(), sin.toFloat32()];
      const wanted = values.map((_, i) => {
        const [row, place] = [Math.floor(i / (heads * headDim)), i % headDim];
        const [j, sign] = place < half ? [place, -1] : [place - half, 1];
        const other = values[place < half ? i + half : i - half]!;
        return values[i]! * c[row * half + j]! + sign * other * s[row * half + j]!;
      });
      expect(worst(turned, wanted)).toBeLessThan(3e-7);
    });
  });

  test("embed adds up look-ups, one index may serve all tokens, and normalises", () => {
    run((k) => {
      const [tokens, width] = [37, 50];
      const indices = (seed: number, rows: number) =>
        mx.fromInt32(
          Int32Array.from(numbers(tokens, seed), (x) => Math.floor(((x + 1) / 2) * rows)),
          [tokens],
        );
      const words = { indices: indices(1, 90), table: matrix(90, width, 2) };
      const places = { indices: indices(3, 40), table: matrix(40, width, 4) };
      const types = { indices: mx.fromInt32(Int32Array.of(1), [1]), table: matrix(2, width, 5) };
      const picked = [words, types, places].map(({ indices: at, table }) => mx.take(table, at, 0));
      const sum = mx.add(mx.add(picked[0]!, picked[1]!), picked[2]!);
      expect(k.embed([words, types, places]).toFloat32()).toEqual(sum.toFloat32());
      expect(k.embed([words]).toFloat32()).toEqual(picked[0]!.toFloat32());
      const weight = vector(numbers(width, 6));
      const bias = vector(numbers(width, 7));
      const normed = k.embed([words, types, places], { weight, bias, eps: 1e-12 }).toFloat32();
      expect(worst(normed, mx.layerNorm(sum, weight, bias, 1e-12).toFloat32())).toBeLessThan(3e-6);
    });
  });

  test("embed never reads outside of a table: the token becomes NaN", () => {
    run((k) => {
      const indices = mx.fromInt32(Int32Array.of(0, 5, -1), [3]);
      const values = [...k.embed([{ indices, table: matrix(5, 2, 1) }]).toFloat32()];
      expect(values.map(Number.isNaN)).toEqual([false, false, true, true, true, true]);
    });
  });

  test("pool sums the weighted tokens of each row, an empty row is zero", () => {
    run((k) => {
      const [lengths, width] = [Int32Array.of(3, 1, 0, 40, 2), 21];
      const total = lengths.reduce((a, b) => a + b, 0);
      const x = numbers(total * width, 1);
      const weights = numbers(total, 2);
      const wanted = new Float64Array(lengths.length * width);
      let token = 0;
      lengths.forEach((length, row) => {
        for (const end = token + length; token < end; token++) {
          for (let i = 0; i < width; i++) {
            wanted[row * width + i]! += weights[token]! * x[token * width + i]!;
          }
        }
      });
      const pooled = k.pool(mx.fromFloat32(x, [total, width]), vector(weights), lengths);
      expect(worst(pooled.toFloat32(), wanted)).toBeLessThan(1e-6);
    });
  });

  test("a batch without tokens gives an empty result", () => {
    run((k) => {
      const none = mx.zeros([0, 8]);
      const lengths = new Int32Array(0);
      const { packed } = layer(k, 8, 4, 1);
      expect(k.linear(none, packed).toFloat32()).toHaveLength(0);
      expect(k.rmsNorm(none, vector(numbers(8, 1)), 1e-6).toFloat32()).toHaveLength(0);
      const rows = { lengths, heads: 2, kvHeads: 2, scale: 1 };
      expect(k.attention(none, none, none, rows).toFloat32()).toHaveLength(0);
    });
  });

  test("what does not fit is refused, not read", () => {
    run((k) => {
      const { packed } = layer(k, 8, 4, 1);
      const x = matrix(3, 8, 1);
      const rows = { lengths: Int32Array.of(2), heads: 2, kvHeads: 2, scale: 1 };
      expect(() => k.linear(matrix(3, 9, 1), packed)).toThrow(mx.MlxError);
      expect(() => k.linear(mx.astype(x, "float16"), packed)).toThrow(/float32/);
      expect(() => k.linear(x, { ...packed, outputs: 5 })).toThrow(/outputs|vector/);
      expect(() => k.linear(x, { ...packed, outputs: 500 })).toThrow(/500 outputs/);
      expect(() => k.linearResidual(x, packed, matrix(2, 4, 1))).toThrow(/rows of x/);
      expect(() => k.attention(x, x, x, rows)).toThrow(/the rows have 2 tokens, the matrix has 3/);
      expect(() => k.attention(x, x, x, { ...rows, heads: 3 })).toThrow(/3 heads/);
      expect(() => k.rope(x, matrix(3, 3, 1), matrix(3, 3, 2))).toThrow(/whole heads/);
      expect(() => k.rmsNorm(x, vector(numbers(7, 1)), 1e-6)).toThrow(/vector of 8/);
      expect(() => k.pool(x, vector(numbers(2, 1)), rows.lengths)).toThrow(mx.MlxError);
    });
  });
});
