import { expect, test } from "bun:test";
import { MAX_FLOAT_BYTES, writeFloats } from "./float-text.ts";

function printed(values: Float32Array): string {
  const bytes = new Uint8Array(values.length * (MAX_FLOAT_BYTES + 1));
  const end = writeFloats(values, [0, values.length], bytes, new DataView(bytes.buffer), 0);
  return new TextDecoder().decode(bytes.subarray(0, end));
}

/** Index of the first value that does not read back, or -1. */
function firstChanged(values: Float32Array): number {
  const parsed: number[] = JSON.parse(`[${printed(values)}]`);
  return values.findIndex((value, i) => !Object.is(Math.fround(parsed[i]!), value));
}

test("every finite f32 bit pattern reads back to the very same f32", () => {
  let state = 0x9e3779b9;
  const patterns = Uint32Array.from({ length: 500_000 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state ^ (state >>> 11);
  });
  const values = new Float32Array(patterns.buffer).filter(Number.isFinite);
  expect(values.length).toBeGreaterThan(490_000);
  expect(firstChanged(values)).toBe(-1);
});

test("components of normalised vectors read back, with at most nine significant digits", () => {
  const values = Float32Array.from(
    { length: 300_000 },
    (_, i) => Math.sin(i * 12.9898) / ((i % 97) + 1),
  );
  expect(firstChanged(values)).toBe(-1);
  for (const text of printed(values.subarray(0, 10_000)).split(",")) {
    const digits = text
      .replace(/e.*$/, "")
      .replace(/^-?[0.]*/, "")
      .replace(".", "");
    expect(digits.length).toBeLessThanOrEqual(9);
  }
});

test("neighbours of powers of ten and of two read back", () => {
  const centres = Float32Array.from({ length: 160 }, (_, i) =>
    i < 80 ? 10 ** (i - 40) : 2 ** (i - 120),
  );
  const bits = new Uint32Array(centres.buffer);
  const around = Uint32Array.from(
    { length: bits.length * 9 },
    (_, i) => bits[Math.floor(i / 9)]! + (i % 9) - 4,
  );
  const values = new Float32Array(around.buffer).filter(Number.isFinite);
  expect(firstChanged(values)).toBe(-1);
  expect(firstChanged(values.map((value) => -value))).toBe(-1);
});

test("numbers with short decimals are printed short", () => {
  const values = Float32Array.of(
    0,
    -0,
    0.5,
    -0.1,
    1,
    -2.5,
    32760,
    0.0001,
    1e-7,
    3.4028234663852886e38,
    123.25,
  );
  expect(printed(values)).toBe("0,-0.0,0.5,-0.1,1,-2.5,32760,0.0001,1e-7,3.4028235e+38,123.25");
});
