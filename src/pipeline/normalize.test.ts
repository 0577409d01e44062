import { expect, test } from "bun:test";
import { normalized } from "./normalize.ts";

const V = Float32Array.of(3, -4, 0, 12);

test("-1 leaves the vector as it is", () => {
  expect(normalized(V, -1)).toEqual(V);
});

test("0 scales the largest component to 32760", () => {
  expect([...normalized(V, 0)]).toEqual([8190, -10920, 0, 32760]);
});

test("1 divides by the sum of magnitudes", () => {
  expect(normalized(V, 1)).toEqual(V.map((component) => component / 19));
});

test("2 gives unit length", () => {
  expect(normalized(V, 2)).toEqual(V.map((component) => component / 13));
});

test("n > 2 divides by the n-norm", () => {
  const norm = (27 + 64 + 1728) ** (1 / 3);
  normalized(V, 3).forEach((value, i) => expect(value).toBeCloseTo(V[i]! / norm, 6));
});

test.each([-1, 0, 1, 2, 3])("a zero vector stays zero in mode %d", (mode) => {
  expect(normalized(new Float32Array(3), mode)).toEqual(new Float32Array(3));
});

test.each([1e30, 1e-30, 1e-42])("components of %d neither overflow nor vanish", (size) => {
  const vector = Float32Array.of(size, size);
  for (const component of normalized(vector, 2)) expect(component).toBeCloseTo(Math.SQRT1_2, 6);
  for (const component of normalized(vector, 20)) expect(component).toBeCloseTo(2 ** (-1 / 20), 6);
});

test("the input is not changed", () => {
  const vector = V.slice();
  normalized(vector, 2);
  expect(vector).toEqual(V);
});
