import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";
import { nativeKernels } from "./library.ts";

mx.openDevice("cpu");

const kernels = mx.kernels();
const instructionSets = ["avx512", "avx2", "baseline"].filter((name) =>
  nativeKernels?.mlxcel_use_instruction_set(name),
);

/** Irregular numbers between -range and range, the same in every run. */
function numbers(count: number, seed: number, range = 1): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => {
    const wave = Math.sin(seed * 12.9898 + i * 78.233) * 43758.5453;
    return (wave - Math.floor(wave) - 0.5) * 2 * range;
  });
}

function matrix(rows: number, width: number, seed: number, range = 1): mx.Tensor {
  return mx.fromFloat32(numbers(rows * width, seed, range), [rows, width]);
}

function vector(values: Float32Array): mx.Tensor {
  return mx.fromFloat32(values, [values.length]);
}

/** The largest difference, relative to the larger of `floor` and the wanted number. */
function worst(actual: Float32Array, wanted: ArrayLike<number>, floor = 1): number {
  expect(actual.length).toBe(wanted.length);
  let found = 0;
  for (let i = 0; i < actual.length; i++) {
    if (Object.is(actual[i], wanted[i]) || actual[i] === wanted[i]) continue;
    const error = Math.abs(actual[i]! - wanted[i]!) / Math.max(floor, Math.abs(wanted[i]!));
    found = Math.max(found, Number.isNaN(error) ? Infinity : error);
  }
  return found;
}

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
  /** Runs `body` with the kernels of this instruction set. */
  function run<T>(body: (k: mx.Kernels) => T): T {
    nativeKernels!.mlxcel_use_instruction_set(name);
    return mx.scope(() => body(kernels!));
  }

  function layer(k: mx.Kernels, inputs: number, outputs: number, seed: number) {
    const weight = matrix(outputs, inputs, seed);
    const bias = vector(numbers(outputs, seed + 1));
    return {
      packed: { weight: k.pack(weight), bias, outputs },
      plain: (x: mx.Tensor) => mx.addmm(bias, x, mx.transpose(weight)),
    };
  }

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
      const x = numbers(3000, 3, 12);
      const actual = k.activate(vector(x), "gelu").toFloat32();
      expect(worst(actual, Float64Array.from(x, exact.gelu), SMALLEST_NORMAL)).toBeLessThan(5e-7);
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

  describe("attention", () => {
    interface Case {
      readonly lengths: readonly number[];
      readonly heads: number;
      readonly kvHeads: number;
      readonly headDim: number;
      readonly causal?: boolean;
      readonly radius?: number;
      readonly past?: number;
    }

    /** Each row alone, by mlx's own attention. */
    function plain(qkv: readonly mx.Tensor[], past: readonly mx.Tensor[], c: Case): Float32Array {
      const head = (x: mx.Tensor, count: number) =>
        mx.transpose(mx.reshape(x, [1, x.shape[0]!, count, c.headDim]), [0, 2, 1, 3]);
      let start = 0;
      const outputs = c.lengths.map((length) => {
        const [q, k, v] = qkv.map((x) =>
          mx.slice(x, [start, 0], [start + length, x.shape[1]!]),
        ) as [mx.Tensor, mx.Tensor, mx.Tensor];
        start += length;
        const [keys, values] =
          past.length > 0
            ? [mx.concatenate([past[0]!, k], 0), mx.concatenate([past[1]!, v], 0)]
            : [k, v];
        const earlier = keys.shape[0]! - length;
        const mask = Float32Array.from({ length: length * keys.shape[0]! }, (_, i) => {
          const [query, key] = [earlier + Math.floor(i / keys.shape[0]!), i % keys.shape[0]!];
          const seen =
            (!c.causal || key <= query) &&
            (c.radius === undefined || Math.abs(key - query) <= c.radius);
          return seen ? 0 : -Infinity;
        });
        const out = mx.scaledDotProductAttention(
          head(q, c.heads),
          head(keys, c.kvHeads),
          head(values, c.kvHeads),
          1 / Math.sqrt(c.headDim),
          { mask: mx.fromFloat32(mask, [1, 1, length, keys.shape[0]!]) },
        );
        return mx.reshape(mx.transpose(out, [0, 2, 1, 3]), [length, c.heads * c.headDim]);
      });
      return mx.concatenate(outputs, 0).toFloat32();
    }

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
          lengths: Int32Array.from(c.lengths),
          scale: 1 / Math.sqrt(c.headDim),
          past: c.past ? { keys: past[0]!, values: past[1]! } : undefined,
        });
        expect(worst(actual.toFloat32(), plain(qkv, past, c))).toBeLessThan(2e-6);
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

    test.each([
      [[3]],
      [[40, 1, 7]],
      [Array.from({ length: 60 }, (_, i) => (i % 9) + 1)],
      [[300, 200]],
    ])("self-attention is the attention of the layer's columns: rows of %j", (lengths) => {
      run((k) => {
        const total = lengths.reduce((a, b) => a + b, 0);
        const rows = { lengths: Int32Array.from(lengths), heads: 3, scale: 0.3 };
        const x = matrix(total, 50, 1);
        const { packed } = layer(k, 50, 3 * 60, 2);
        for (const mask of [{}, { causal: true }, { radius: 4 }]) {
          const [q, keys, values] = mx.split(k.linear(x, packed), 3, 1);
          const wanted = k.attention(q!, keys!, values!, { ...rows, kvHeads: 3, ...mask });
          const actual = k.selfAttention(x, packed, { ...rows, ...mask });
          expect(actual.toFloat32()).toEqual(wanted.toFloat32());
        }
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

test.skipIf(!kernels)("kernels of two threads and of one agree", () => {
  const before = mx.kernelThreads()!;
  const results = [1, 2, 5].map((threads) => {
    mx.setKernelThreads(threads);
    return mx.scope(() => {
      const weight = kernels!.pack(matrix(700, 384, 1));
      const x = matrix(300, 384, 2);
      return kernels!.linear(x, { weight, outputs: 700 }, "gelu").toFloat32();
    });
  });
  mx.setKernelThreads(before);
  expect(results[1]).toEqual(results[0]!);
  expect(results[2]).toEqual(results[0]!);
});

interface Rounds {
  readonly equal: boolean;
  readonly first: Float32Array;
}

function roundsInWorker(rounds: number): Promise<Rounds> {
  const { promise, resolve, reject } = Promise.withResolvers<Rounds>();
  const worker = new Worker(new URL("./kernels.worker.ts", import.meta.url));
  worker.onmessage = ({ data }: MessageEvent<Rounds>) => resolve(data);
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(rounds);
  return promise.finally(() => worker.terminate());
}

test.skipIf(!kernels)("workers that share the threads get the numbers of one alone", async () => {
  const { first } = await roundsInWorker(1);
  for (const rounds of await Promise.all([1, 2, 3].map(() => roundsInWorker(60)))) {
    expect(rounds.equal).toBe(true);
    expect(rounds.first).toEqual(first);
  }
});

test.skipIf(!kernels)("threads without work sleep", async () => {
  mx.scope(() => kernels!.rmsNorm(matrix(4000, 384, 1), vector(numbers(384, 2)), 1e-6).toFloat32());
  const before = process.cpuUsage();
  await Bun.sleep(1000);
  const { user, system } = process.cpuUsage(before);
  // Awake, one thread alone would use up the whole second.
  expect((user + system) / 1e6).toBeLessThan(0.3);
});
