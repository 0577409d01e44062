import { expect, test } from "bun:test";
import { bucketOf } from "./relative-bias.ts";

const bucketsOf = (offsets: readonly number[], buckets: number, maxDistance: number) =>
  offsets.map((offset) => bucketOf(offset, { buckets, maxDistance }));

// Of `_relative_position_bucket` in transformers 5.24.0 (T5, bidirectional); MPNet's is the same.
test("small distances have a bucket each, larger ones share one up to the last, on both sides", () => {
  const distances = [0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 127, 128];
  const before = [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15];
  expect(
    bucketsOf(
      distances.map((distance) => -distance),
      32,
      128,
    ),
  ).toEqual(before);
  const after = before.map((bucket) => (bucket === 0 ? 0 : bucket + 16));
  expect(bucketsOf(distances, 32, 128)).toEqual(after);
  expect(bucketsOf([-5000, 5000], 32, 128)).toEqual([15, 31]);
  expect(bucketsOf([-9, -7, -6, -3, -2, -1, 0, 1, 2, 3, 6, 7, 9], 8, 20)).toEqual([
    3, 3, 2, 2, 2, 1, 0, 5, 6, 6, 6, 7, 7,
  ]);
});
