import { expect, test } from "bun:test";
import { rowOfDistance } from "./disentangled-attention.ts";

// Of `make_log_bucket_position` in transformers 5.24.0, plus the span and clamped as its attention does.
test("small distances have a row each, larger ones share one up to the last, in both directions", () => {
  const rows = (distances: readonly number[], span: number, maxDistance: number) =>
    distances.map((distance) => rowOfDistance(distance, { span, maxDistance }));
  const distances = [0, 1, 127, 128, 129, 130, 200, 255, 256, 400, 510, 511];
  const behind = [256, 257, 383, 384, 385, 386, 425, 448, 448, 489, 511, 511];
  expect(rows(distances, 256, 512)).toEqual(behind);
  const opposite = distances.map((distance) => -distance);
  expect(rows(opposite, 256, 512)).toEqual(behind.map((row) => 512 - row));
  expect(rows([512, 5000, -512, -5000], 256, 512)).toEqual([511, 511, 0, 0]);
  expect(rows([-63, -20, -5, -4, 0, 4, 5, 6, 20, 62, 63, 64], 8, 64)).toEqual([
    1, 2, 3, 4, 8, 12, 13, 13, 14, 15, 15, 15,
  ]);
});
