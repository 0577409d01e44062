import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";
import { layer, matrix, numbers, runInBf16, vector, worst } from "./testing/kernels.ts";

const SHAPES = [
  { rows: 1, inputs: 1, outputs: 1 },
  { rows: 3, inputs: 5, outputs: 7 },
  { rows: 8, inputs: 384, outputs: 384 },
  { rows: 13, inputs: 33, outputs: 65 },
  { rows: 29, inputs: 1031, outputs: 50 },
  { rows: 30, inputs: 3001, outputs: 40 },
  { rows: 200, inputs: 512, outputs: 96 },
];

const rounded = (x: mx.Tensor) => mx.astype(mx.astype(x, "bfloat16"), "float32");

describe.each(SHAPES)("$rows rows, $inputs inputs, $outputs outputs in bf16", (shape) => {
  const { rows, inputs, outputs } = shape;
  const tolerance = 2e-6 * Math.max(1, Math.sqrt(inputs) / 4);
  const inputsOf = (k: mx.Kernels, seed: number) => {
    const weight = matrix(outputs, inputs, seed);
    const bias = vector(numbers(outputs, seed + 1));
    const packed = k.pack(weight);
    return {
      packed: { weight: packed, bias, outputs },
      plain: (x: mx.Tensor) => mx.addmm(bias, rounded(x), mx.transpose(rounded(weight))),
    };
  };

  test("linear: the product of the rounded factors, summed in f32", () => {
    runInBf16((k) => {
      const x = matrix(rows, inputs, 1);
      const { packed, plain } = inputsOf(k, 2);
      expect(worst(k.linear(x, packed).toFloat32(), plain(x).toFloat32())).toBeLessThan(tolerance);
    });
  });

  test("gated linear, and a product of strided columns", () => {
    runInBf16((k) => {
      const [, x] = mx.split(matrix(rows, 2 * inputs, 1), 2, 1);
      const [gate, up] = [inputsOf(k, 2), inputsOf(k, 4)];
      const wanted = mx.multiply(k.activate(gate.plain(x!), "silu"), up.plain(x!)).toFloat32();
      const actual = k.gatedLinear(x!, gate.packed, up.packed, "silu").toFloat32();
      expect(worst(actual, wanted)).toBeLessThan(10 * tolerance);
    });
  });

  test("a row does not depend on the rows beside it", () => {
    runInBf16((k) => {
      const x = matrix(rows, inputs, 1);
      const { packed } = inputsOf(k, 2);
      const last = mx.slice(x, [rows - 1, 0], [rows, inputs]);
      const alone = k.linear(last, packed).toFloat32();
      expect(k.linear(x, packed).toFloat32().slice(-outputs)).toEqual(alone);
    });
  });
});

test("self-attention whose projections are cut by heads is the attention of the layer's columns", () => {
  runInBf16((k) => {
    const [inputs, heads, headDim] = [51, 4, 32];
    const rows = { lengths: Int32Array.of(300, 0, 200), heads, scale: 0.3 };
    const x = matrix(500, inputs, 1);
    const { packed } = layer(k, inputs, 3 * heads * headDim, 2);
    const [q, keys, values] = mx.split(k.linear(x, packed), 3, 1);
    const wanted = k.attention(q!, keys!, values!, { ...rows, kvHeads: heads });
    expect(k.selfAttention(x, packed, rows).toFloat32()).toEqual(wanted.toFloat32());
  });
});

test("bf16 weights take half the memory, and are refused by the f32 kernels", () => {
  const kernels = mx.kernels();
  let packed: mx.Tensor | undefined;
  runInBf16((k) => {
    packed = mx.keep(k.pack(matrix(64, 100, 1)));
    expect(packed.shape.reduce((a, b) => a * b)).toBe((64 * 100) / 2);
  });
  if (!kernels || !packed) return;
  const layer = { weight: packed, outputs: 64 };
  expect(() => kernels.linear(matrix(1, 100, 2), layer)).toThrow(mx.MlxError);
});
