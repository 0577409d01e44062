import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { Weights } from "../checkpoint/weights.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { bert } from "./bert.ts";
import { lookupTable } from "./lookup-table.ts";
import { modernbert } from "./modernbert.ts";
import { qwen3 } from "./qwen3.ts";
import { roberta } from "./roberta.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";

mx.openDevice("cpu");

function openWeights(name: string, prefixes: readonly string[]): Weights {
  return Weights.open(fixture(name), { prefixes, computeDtype: "float32" });
}

test("both ends of the table are its last rows", () => {
  const weights = openWeights("bert-mean", ["bert."]);
  const table = lookupTable(weights, "embeddings.word_embeddings", 1000, 64);
  weights.close();
  expect(mx.scope(() => table(Int32Array.of(0, 999)).shape)).toEqual([2, 64]);
  for (const index of [-1, -100_000, 1000, 0x7fff_ffff]) {
    expect(() => table(Int32Array.of(0, index))).toThrow(
      `${index} is not one of the 1000 rows of "embeddings.word_embeddings"`,
    );
  }
});

const row = { ids: Int32Array.of(5), positions: Int32Array.of(0), lengths: Int32Array.of(1) };

test.each([
  ["bert-mean", bert, { typeIds: Int32Array.of(-1) }],
  ["bert-mean", bert, { typeIds: Int32Array.of(2) }],
  ["bert-mean", bert, { positions: Int32Array.of(128) }],
  ["bert-mean", bert, { positions: Int32Array.of(-1) }],
  ["bert-mean", bert, { ids: Int32Array.of(-1) }],
  ["roberta-mean", roberta, { ids: Int32Array.of(-1) }],
  ["modernbert-mean", modernbert, { ids: Int32Array.of(-1) }],
  ["qwen3-embed", qwen3, { ids: Int32Array.of(-1) }],
  ["qwen3-embed", qwen3, { ids: Int32Array.of(2 ** 30) }],
])("%s never reads outside of its tables", (name, family, change) => {
  const weights = openWeights(name, family.weightPrefixes);
  const encoder = family.load(readCheckpoint(fixture(name)).config, weights);
  weights.close();
  expect(() => mx.scope(() => encoder.forward(row).toFloat32())).not.toThrow();
  expect(() => mx.scope(() => encoder.forward({ ...row, ...change }))).toThrow(/is not one of the/);
});
