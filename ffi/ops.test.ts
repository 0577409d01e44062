import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";

const A = [0.5, -1.25, 2, 3.5, -0.75, 1];
const B = [2, 0.25, -4, 1, 1.5, 3];

function tensor(values: readonly number[], shape: readonly number[] = [values.length]): mx.Tensor {
  return mx.fromFloat32(Float32Array.from(values), shape);
}

/** Runs the body in a scope and compares the elements with plain numbers. */
function expectNumbers(body: () => mx.Tensor, expected: readonly number[], tolerance = 1e-6): void {
  const actual = mx.scope(() => body().toFloat32());
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, i) => {
    if (Number.isFinite(value)) {
      expect(Math.abs(actual[i]! - value)).toBeLessThanOrEqual(
        tolerance * Math.max(1, Math.abs(value)),
      );
    } else expect(actual[i]).toBe(value);
  });
}

// Values of the error function, Abramowitz and Stegun, table 7.1
const ERF = new Map([
  [0, 0],
  [0.5, 0.5204998778],
  [1, 0.8427007929],
  [-1, -0.8427007929],
]);

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

describe("element-wise operations compute what JavaScript does", () => {
  const unary: readonly [(a: mx.Tensor) => mx.Tensor, (x: number) => number][] = [
    [mx.abs, Math.abs],
    [mx.exp, Math.exp],
    [mx.tanh, Math.tanh],
    [mx.sin, Math.sin],
    [mx.cos, Math.cos],
    [mx.sigmoid, sigmoid],
    [mx.square, (x) => x * x],
    [mx.sqrt, Math.sqrt],
  ];
  for (const [operation, reference] of unary) {
    test(operation.name, () => {
      const values = operation === mx.sqrt ? A.map(Math.abs) : A;
      expectNumbers(() => operation(tensor(values)), values.map(reference));
    });
  }

  test("erf", () => {
    expectNumbers(() => mx.erf(tensor([...ERF.keys()])), [...ERF.values()]);
  });

  const binary: readonly [
    (a: mx.Tensor, b: mx.Tensor) => mx.Tensor,
    (x: number, y: number) => number,
  ][] = [
    [mx.add, (x, y) => x + y],
    [mx.subtract, (x, y) => x - y],
    [mx.multiply, (x, y) => x * y],
    [mx.divide, (x, y) => x / y],
    [mx.maximum, Math.max],
    [mx.less, (x, y) => Number(x < y)],
    [mx.lessEqual, (x, y) => Number(x <= y)],
    [mx.greaterEqual, (x, y) => Number(x >= y)],
  ];
  for (const [operation, reference] of binary) {
    test(operation.name, () => {
      const left = [...A, 7];
      const right = [...B, 7];
      expectNumbers(
        () => operation(tensor(left), tensor(right)),
        left.map((x, i) => reference(x, right[i]!)),
      );
    });
  }

  test("shapes broadcast", () => {
    expectNumbers(
      () => mx.add(tensor([1, 2], [2, 1]), tensor([10, 20, 30], [3])),
      [11, 21, 31, 12, 22, 32],
    );
  });

  test("logic, where and finiteness", () => {
    const flags = (values: readonly number[]) => mx.astype(tensor(values), "bool");
    expectNumbers(() => mx.logicalAnd(flags([0, 0, 1, 1]), flags([0, 1, 0, 1])), [0, 0, 0, 1]);
    expectNumbers(() => mx.logicalOr(flags([0, 0, 1, 1]), flags([0, 1, 0, 1])), [0, 1, 1, 1]);
    expectNumbers(() => mx.where(flags([1, 0]), tensor([1, 2]), tensor([3, 4])), [1, 4]);
    expectNumbers(() => mx.isFinite(tensor([1, NaN, Infinity, -Infinity])), [1, 0, 0, 0]);
  });
});

describe("products", () => {
  test("matmul multiplies the last two axes and broadcasts the rest", () => {
    expectNumbers(
      () => mx.matmul(tensor([1, 2, 3, 4, 5, 6], [1, 2, 3]), tensor([1, 0, 0, 1, 1, 1], [3, 2])),
      [4, 5, 10, 11],
    );
  });

  test("addmm scales the product and the addend", () => {
    const [c, a, b] = [
      () => tensor([10, 20]),
      () => tensor([1, 2], [1, 2]),
      () => tensor([1, 2, 3, 4], [2, 2]),
    ];
    expectNumbers(() => mx.addmm(c(), a(), b()), [17, 30]);
    expectNumbers(() => mx.addmm(c(), a(), b(), 2, 0.5), [19, 30]);
  });
});

describe("reductions", () => {
  const matrix = () => tensor([1, 5, 3, 4, 2, 6], [2, 3]);

  test("run over one axis, several, or all", () => {
    expectNumbers(() => mx.sum(matrix(), 0), [5, 7, 9]);
    expectNumbers(() => mx.sum(matrix(), [0, 1]), [21]);
    expectNumbers(() => mx.sum(matrix()), [21]);
    expectNumbers(() => mx.mean(matrix(), -1), [3, 4]);
    expectNumbers(() => mx.max(matrix(), 1), [5, 6]);
    expectNumbers(() => mx.max(matrix(), [0]), [4, 5, 6]);
    expectNumbers(() => mx.all(mx.less(mx.scalar(1), matrix()), 1), [0, 1]);
  });

  test("keep the axis on demand", () => {
    mx.scope(() => {
      expect(mx.sum(matrix(), 1, true).shape).toEqual([2, 1]);
      expect(mx.max(matrix(), undefined, true).shape).toEqual([1, 1]);
      expect(mx.mean(matrix(), [0, 1]).shape).toEqual([]);
    });
  });

  test("softmax sums to one, also for large scores", () => {
    const weights = [1, 2, 3].map((x) => Math.exp(x - 3));
    const total = weights.reduce((sum, x) => sum + x, 0);
    expectNumbers(
      () => mx.softmax(tensor([1001, 1002, 1003]), 0),
      weights.map((x) => x / total),
    );
  });
});

describe("layout", () => {
  const matrix = () => tensor([1, 2, 3, 4, 5, 6], [2, 3]);

  test("a transposed tensor is read in its own row-major order", () => {
    expectNumbers(() => mx.transpose(matrix()), [1, 4, 2, 5, 3, 6]);
    expectNumbers(
      () => mx.transpose(mx.reshape(matrix(), [1, 2, 3]), [2, 0, 1]),
      [1, 4, 2, 5, 3, 6],
    );
    expectNumbers(() => mx.contiguous(mx.transpose(matrix())), [1, 4, 2, 5, 3, 6]);
  });

  test("a broadcast tensor and a strided slice are read element by element", () => {
    expectNumbers(() => mx.broadcastTo(tensor([1, 2], [2, 1]), [2, 3]), [1, 1, 1, 2, 2, 2]);
    expectNumbers(() => mx.slice(matrix(), [0, 0], [2, 3], [1, 2]), [1, 3, 4, 6]);
  });

  test("shapes", () => {
    mx.scope(() => {
      const a = matrix();
      expect(mx.reshape(a, [-1, 2]).shape).toEqual([3, 2]);
      expect(mx.expandDims(a, 1).shape).toEqual([2, 1, 3]);
      expect(mx.expandDims(a, [0, -1]).shape).toEqual([1, 2, 3, 1]);
      expect([a.size, a.byteLength, mx.astype(a, "bfloat16").byteLength]).toEqual([6, 24, 12]);
      expect(() =>
        mx.reshape(
          a,
          Array.from({ length: 33 }, () => 1),
        ),
      ).toThrow("33 axes");
    });
  });

  test("concatenate and split are inverses", () => {
    expectNumbers(
      () => mx.concatenate([matrix(), tensor([7, 8, 9], [1, 3])], 0),
      [1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    expectNumbers(() => mx.concatenate(mx.split(matrix(), 3, 1), 1), [1, 2, 3, 4, 5, 6]);
    mx.scope(() => {
      const parts = mx.split(tensor([1, 2, 3, 4, 5]), [2, 3]);
      expect(parts.map((part) => [...part.toFloat32()])).toEqual([[1, 2], [3], [4, 5]]);
    });
  });

  test("empty tensors are legal", () => {
    expectNumbers(() => mx.concatenate([tensor([], [0, 3]), matrix()]), [1, 2, 3, 4, 5, 6]);
    expectNumbers(() => mx.zeros([0, 4]), []);
  });
});

describe("indexing", () => {
  const table = () => tensor([0, 1, 10, 11, 20, 21], [3, 2]);
  const indices = (values: readonly number[], shape: readonly number[] = [values.length]) =>
    mx.fromInt32(Int32Array.from(values), shape);

  test("take picks rows and columns", () => {
    expectNumbers(() => mx.take(table(), indices([2, 0, 2])), [20, 21, 0, 1, 20, 21]);
    expectNumbers(() => mx.take(table(), indices([1]), 1), [1, 11, 21]);
  });

  test("takeAlongAxis indexes per element", () => {
    expectNumbers(() => mx.takeAlongAxis(table(), indices([1, 0, 1], [3, 1]), 1), [1, 10, 21]);
  });
});

describe("creation and types", () => {
  test("arrays from nothing and from values", () => {
    expectNumbers(() => mx.arange(4), [0, 1, 2, 3]);
    expectNumbers(() => mx.ones([3], "float16"), [1, 1, 1]);
    mx.scope(() => {
      expect(mx.fromUint32(new Uint32Array([7]), [1]).dtype).toBe("uint32");
      expect(mx.arange(4).dtype).toBe("int32");
      expect(mx.zeros([2], "bfloat16").dtype).toBe("bfloat16");
    });
  });

  test("bytes are written in place", () => {
    const halves = new Uint8Array(Float16Array.of(1, -2, 0.5, 4).buffer);
    mx.scope(() => {
      const tensor = mx.written([2, 2], "float16", (bytes) => bytes.set(halves));
      expect(tensor.shape).toEqual([2, 2]);
      expect([...tensor.toFloat32()]).toEqual([1, -2, 0.5, 4]);
      expect(mx.written([0, 4], "uint32", (bytes) => bytes.fill(1)).size).toBe(0);
      const fail = () =>
        mx.written([1], "float32", () => {
          throw new Error("no more bytes");
        });
      expect(fail).toThrow("no more bytes");
    });
  });

  test("values must fill the shape", () => {
    expect(() => tensor([1, 2, 3], [2, 2])).toThrow(
      "fromFloat32: 3 values do not fill the shape [2, 2]",
    );
  });

  test("a scalar has the type that was asked for", () => {
    const dtypes: readonly mx.Dtype[] = [
      "bool",
      "uint8",
      "uint32",
      "int8",
      "int32",
      "int64",
      "float16",
      "bfloat16",
      "float32",
    ];
    mx.scope(() => {
      for (const dtype of dtypes) {
        const one = mx.scalar(1, dtype);
        expect({ dtype: one.dtype, shape: one.shape, value: one.toFloat32()[0] }).toEqual({
          dtype,
          shape: [],
          value: 1,
        });
      }
      expect(() => mx.scalar(0.5, "int32")).toThrow("0.5 is not a whole number");
    });
  });

  test("astype rounds 16-bit floats to nearest even", () => {
    // bfloat16 holds 8 significant bits: 257 lies between 256 and 258, 259 between 258 and 260
    expectNumbers(() => mx.astype(tensor([257, 259]), "bfloat16"), [256, 260], 0);
    expectNumbers(() => mx.astype(tensor([2049, 2051]), "float16"), [2048, 2052], 0);
  });
});
