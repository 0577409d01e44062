import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { RowLayout } from "./row-layout.ts";

mx.openDevice("cpu");

/** [N, 2]: token n is (n, -n). */
function numberedTokens(lengths: readonly number[]): mx.Tensor {
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const values = Array.from({ length: total }, (_, n) => [n, -n]).flat();
  return mx.fromFloat32(Float32Array.from(values), [total, 2]);
}

const BATCHES = [
  [1],
  [2, 1],
  [1, 2],
  [5, 5, 5],
  [3, 40, 3, 39, 200],
  [64, 1, 63, 8, 7, 9, 300, 299],
  [200, 3, 200, 3],
].map((lengths) => ({ lengths }));

test.each(BATCHES)("tokens come back as they were: rows of $lengths", ({ lengths }) => {
  mx.scope(() => {
    const x = numberedTokens(lengths);
    const layout = new RowLayout({ lengths: Int32Array.from(lengths) });
    expect(layout.tokens(layout.blocks(x)).toFloat32()).toEqual(x.toFloat32());
  });
});

test.each(BATCHES)("blocks hold rows padded by their last token: $lengths", ({ lengths }) => {
  mx.scope(() => {
    const layout = new RowLayout({ lengths: Int32Array.from(lengths) });
    const blocks = layout.blocks(numberedTokens(lengths));
    const starts = lengths.map((_, row) => lengths.slice(0, row).reduce((a, b) => a + b, 0));
    layout.buckets.forEach(({ rows, width }, i) => {
      const cells = blocks[i]!.toFloat32();
      rows.forEach((row, place) => {
        for (let t = 0; t < width; t++) {
          const token = starts[row]! + Math.min(t, lengths[row]! - 1);
          expect(cells[(place * width + t) * 2]).toBe(token);
        }
      });
    });
  });
});

test("results per bucket come back in the order of the batch", () => {
  mx.scope(() => {
    const layout = new RowLayout({ lengths: Int32Array.of(3, 90, 4, 89, 30) });
    const perBucket = layout.buckets.map(({ rows }) =>
      mx.fromFloat32(Float32Array.from(rows), [rows.length, 1]),
    );
    expect([...layout.rows(perBucket).toFloat32()]).toEqual([0, 1, 2, 3, 4]);
  });
});

test("padding stays below a sixth of long rows, and short rows share one block", () => {
  const lengths = Int32Array.from({ length: 400 }, (_, i) => i + 100);
  const { buckets } = new RowLayout({ lengths });
  const cells = buckets.reduce((sum, { rows, width }) => sum + rows.length * width, 0);
  expect(cells).toBeLessThan(lengths.reduce((a, b) => a + b, 0) * (7 / 6));
  expect(new RowLayout({ lengths: Int32Array.of(3, 9, 5, 4, 8) }).buckets).toHaveLength(1);
});

test("a row without tokens is refused", () => {
  expect(() => new RowLayout({ lengths: Int32Array.of(3, 0) })).toThrow(RangeError);
  expect(() => new RowLayout({ lengths: Int32Array.of() })).toThrow(RangeError);
});

test("attention must see some tokens of a row, and only such that it has", () => {
  const lengths = Int32Array.of(3, 4);
  for (const attended of [Int32Array.of(3, 0), Int32Array.of(4, 4), Int32Array.of(3)]) {
    expect(() => new RowLayout({ lengths, attended })).toThrow(RangeError);
  }
  const { buckets } = new RowLayout({ lengths, attended: Int32Array.of(2, 1) });
  expect(buckets.map((bucket) => [...bucket.attended])).toEqual([[1, 2]]);
});
