import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";

/** Small irregular numbers, the same in every run. */
function numbers(count: number, seed: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(i * 1.7 + seed));
}

function expectClose(actual: Float32Array, expected: readonly number[], tolerance = 1e-5): void {
  expect(actual).toHaveLength(expected.length);
  const worst = Math.max(...expected.map((value, i) => Math.abs(value - actual[i]!)));
  expect(worst).toBeLessThanOrEqual(tolerance);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

describe("norms over the last axis", () => {
  const row = [...numbers(8, 1)];
  const weight = numbers(8, 2);
  const bias = numbers(8, 3);
  const tensor = (values: Float32Array) => mx.fromFloat32(values, [8]);
  const x = () => mx.fromFloat32(Float32Array.from(row), [1, 8]);

  test("layerNorm, with and without weight and bias", () => {
    const center = mean(row);
    const deviation = Math.sqrt(mean(row.map((value) => (value - center) ** 2)) + 1e-5);
    const normal = row.map((value) => (value - center) / deviation);
    mx.scope(() => {
      expectClose(mx.layerNorm(x(), null, null, 1e-5).toFloat32(), normal);
      expectClose(
        mx.layerNorm(x(), tensor(weight), tensor(bias), 1e-5).toFloat32(),
        normal.map((value, i) => value * weight[i]! + bias[i]!),
      );
    });
  });

  test("rmsNorm, with and without weight", () => {
    const root = Math.sqrt(mean(row.map((value) => value * value)) + 1e-6);
    mx.scope(() => {
      expectClose(
        mx.rmsNorm(x(), null, 1e-6).toFloat32(),
        row.map((value) => value / root),
      );
      expectClose(
        mx.rmsNorm(x(), tensor(weight), 1e-6).toFloat32(),
        row.map((value, i) => (value / root) * weight[i]!),
      );
    });
  });
});

describe("rope", () => {
  const [T, D] = [3, 4];
  const x = numbers(T * D, 4);
  const tensor = () => mx.fromFloat32(x, [1, 1, T, D]);

  /** Halves paired: (x[i], x[i + D/2]) turned by position · frequency[i]. */
  function rotated(firstPosition: number, frequencies: readonly number[]): number[] {
    const out = new Array<number>(T * D).fill(0);
    for (let t = 0; t < T; t++) {
      for (let i = 0; i < D / 2; i++) {
        const angle = (firstPosition + t) * frequencies[i]!;
        const [a, b] = [x[t * D + i]!, x[t * D + i + D / 2]!];
        out[t * D + i] = a * Math.cos(angle) - b * Math.sin(angle);
        out[t * D + i + D / 2] = a * Math.sin(angle) + b * Math.cos(angle);
      }
    }
    return out;
  }

  const frequencies = [1, 1 / Math.sqrt(10_000)];

  test("turns each pair by its position, from any first position", () => {
    mx.scope(() => {
      expectClose(
        mx.rope(tensor(), { dims: D, base: 10_000 }).toFloat32(),
        rotated(0, frequencies),
      );
      expectClose(
        mx.rope(tensor(), { dims: D, base: 10_000, offset: 5 }).toFloat32(),
        rotated(5, frequencies),
      );
      const offset = mx.fromInt32(new Int32Array([5]), [1]);
      expectClose(
        mx.rope(tensor(), { dims: D, base: 10_000, offset }).toFloat32(),
        rotated(5, frequencies),
      );
    });
  });

  test("takes wavelengths instead of a base", () => {
    mx.scope(() => {
      const freqs = mx.fromFloat32(new Float32Array([2, 5]), [2]);
      expectClose(mx.rope(tensor(), { dims: D, freqs }).toFloat32(), rotated(0, [1 / 2, 1 / 5]));
    });
  });
});

describe("scaledDotProductAttention", () => {
  const [T, D] = [4, 8];
  const scale = 1 / Math.sqrt(D);
  const [q, k, v] = [numbers(T * D, 5), numbers(T * D, 6), numbers(T * D, 7)];

  function attention(sees: (query: number, key: number) => boolean): number[] {
    const out: number[] = [];
    for (let i = 0; i < T; i++) {
      const weights = Array.from({ length: T }, (_, j) => {
        let score = 0;
        for (let d = 0; d < D; d++) score += q[i * D + d]! * k[j * D + d]!;
        return sees(i, j) ? Math.exp(score * scale) : 0;
      });
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      for (let d = 0; d < D; d++) {
        out.push(weights.reduce((sum, weight, j) => sum + weight * v[j * D + d]!, 0) / total);
      }
    }
    return out;
  }

  function run(mask: () => mx.AttentionMask): Float32Array {
    return mx.scope(() => {
      const [a, b, c] = [q, k, v].map((values) => mx.fromFloat32(values, [1, 1, T, D]));
      return mx.scaledDotProductAttention(a!, b!, c!, scale, mask()).toFloat32();
    });
  }

  test("without a mask sees every key", () => {
    expectClose(
      run(() => ({})),
      attention(() => true),
    );
  });

  test("causal sees the keys up to the query", () => {
    expectClose(
      run(() => ({ causal: true })),
      attention((query, key) => key <= query),
    );
  });

  test("with a mask, boolean or added, sees what the mask lets through", () => {
    const lengths = new Float32Array([1, 1, 1, 0]);
    const firstThree = attention((_, key) => key < 3);
    expectClose(
      run(() => ({ mask: mx.astype(mx.fromFloat32(lengths, [1, 1, 1, T]), "bool") })),
      firstThree,
    );
    const added = lengths.map((sees) => (sees ? 0 : -Infinity));
    expectClose(
      run(() => ({ mask: mx.fromFloat32(added, [1, 1, 1, T]) })),
      firstThree,
    );
  });
});

test("rows of a table have their values however many they are, and however wide", () => {
  mx.scope(() => {
    const packing: mx.Packing = { groupSize: 16, bits: 4, mode: "nvfp4" };
    const table = mx.quantize(mx.fromFloat32(numbers(8 * 48, 8), [8, 48]), packing);
    const whole = mx.dequantize(table);
    for (const wanted of [[3], [3, 1], [7, 0, 7], [1, 2, 3, 4], [1, 2, 3, 4, 5]]) {
      const indices = mx.fromInt32(Int32Array.from(wanted), [wanted.length]);
      const rows = mx.dequantizeRows(table, indices);
      expect(rows.shape).toEqual([wanted.length, 48]);
      expect(rows.toFloat32()).toEqual(mx.take(whole, indices, 0).toFloat32());
    }
  });
});

describe("quantized weights", () => {
  const [M, N, K] = [3, 8, 64];

  test("dequantize within one step, and multiply like the dense weights they stand for", () => {
    mx.scope(() => {
      const packing: mx.Packing = { groupSize: 32, bits: 8, mode: "affine" };
      const dense = mx.fromFloat32(numbers(N * K, 8), [N, K]);
      const x = mx.fromFloat32(numbers(M * K, 9), [M, K]);
      const quantized = mx.quantize(dense, packing);
      expect(quantized.packed.dtype).toBe("uint32");
      expect(quantized.scales.shape).toEqual([N, K / packing.groupSize]);
      const restored = mx.dequantize(quantized);
      // 255 steps over at most [-1, 1]; mlx shifts them so that zero is one of them
      expectClose(restored.toFloat32(), [...dense.toFloat32()], 2 / 255);
      const product = mx.quantizedMatmul(x, quantized);
      expectClose(product.toFloat32(), [...mx.matmul(x, mx.transpose(restored)).toFloat32()], 1e-4);
      expect(mx.dequantize(quantized, "bfloat16").dtype).toBe("bfloat16");
    });
  });

  test.each([
    { mode: "affine", groupSize: 64, bits: 3 },
    { mode: "mxfp4", groupSize: 32, bits: 4 },
    { mode: "nvfp4", groupSize: 16, bits: 4 },
    { mode: "mxfp8", groupSize: 32, bits: 8 },
  ] as const)("$mode: rows and products are those of the whole matrix", (packing) => {
    mx.scope(() => {
      const quantized = mx.quantize(mx.fromFloat32(numbers(N * K, 8), [N, K]), packing);
      expect(quantized.biases !== undefined).toBe(packing.mode === "affine");
      const restored = mx.dequantize(quantized);
      const indices = mx.fromInt32(Int32Array.of(5, 0, 5), [3]);
      const rows = mx.dequantizeRows(quantized, indices);
      expect(rows.toFloat32()).toEqual(mx.take(restored, indices, 0).toFloat32());
      const x = mx.fromFloat32(numbers(M * K, 9), [M, K]);
      const wanted = mx.matmul(x, mx.transpose(restored)).toFloat32();
      expectClose(mx.quantizedMatmul(x, quantized).toFloat32(), [...wanted], 1e-4);
    });
  });
});
