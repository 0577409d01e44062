import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { inverseFrequencies, rotation } from "./rope.ts";

mx.openDevice("cpu");

const HEADS = 3;
const HEAD_DIM = 6;
const WIDTH = HEADS * HEAD_DIM;
const THETA = 10000;
/** Three rows, one of them not from 0. */
const POSITIONS = Int32Array.of(0, 1, 2, 3, 0, 700, 701, 5000);

const X = Float32Array.from({ length: POSITIONS.length * WIDTH }, (_, i) => Math.sin(i * 1.7) * 2);

function rotated(x: Float32Array<ArrayBuffer>, positions: Int32Array): Float32Array<ArrayBuffer> {
  return mx.scope(() => {
    const rotate = rotation(positions, inverseFrequencies(HEAD_DIM, THETA));
    const out = rotate(mx.fromFloat32(x, [positions.length, WIDTH]));
    expect(out.shape).toEqual([positions.length, WIDTH]);
    return out.toFloat32();
  });
}

test("component i turns together with component i + headDim/2, by position · theta^(-2i/headDim)", () => {
  const actual = rotated(X, POSITIONS);
  const half = HEAD_DIM / 2;
  POSITIONS.forEach((position, token) => {
    for (let head = 0; head < HEADS; head++) {
      for (let i = 0; i < half; i++) {
        const at = token * WIDTH + head * HEAD_DIM + i;
        const angle = position * THETA ** ((-2 * i) / HEAD_DIM);
        const [a, b] = [X[at]!, X[at + half]!];
        expect(actual[at]).toBeCloseTo(a * Math.cos(angle) - b * Math.sin(angle), 3);
        expect(actual[at + half]).toBeCloseTo(b * Math.cos(angle) + a * Math.sin(angle), 3);
      }
    }
  });
});

test("position 0 changes nothing", () => {
  expect(rotated(X.subarray(0, WIDTH), Int32Array.of(0))).toEqual(X.slice(0, WIDTH));
});

test("a token's turn does not depend on the other tokens", () => {
  const together = rotated(X, POSITIONS);
  POSITIONS.forEach((position, token) => {
    const from = token * WIDTH;
    const alone = rotated(X.subarray(from, from + WIDTH), Int32Array.of(position));
    expect(together.slice(from, from + WIDTH)).toEqual(alone);
  });
});

test("half precision stays half precision", () => {
  mx.scope(() => {
    const x = mx.astype(mx.fromFloat32(X, [POSITIONS.length, WIDTH]), "float16");
    const out = rotation(POSITIONS, inverseFrequencies(HEAD_DIM, THETA))(x);
    expect(out.dtype).toBe("float16");
    out.toFloat32().forEach((value, i) => expect(value).toBeCloseTo(rotated(X, POSITIONS)[i]!, 2));
  });
});
