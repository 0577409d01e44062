/** A row's vector depends on the row alone: not on its neighbours, not on its place, not on the batch's size. */
import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import type { EmbeddingModel, EmbedRow } from "../../src/pipeline/embedder.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { expectClose, rawVectors, shuffled } from "./reference.ts";

const device = mx.openDevice("cpu");

function rowOfLength(model: EmbeddingModel, length: number): EmbedRow {
  const ids = Int32Array.from(
    { length },
    (_, i) => (7 + 31 * i + 13 * length) % model.facts.vocabSize,
  );
  return model.tokenize({ ids }, {});
}

function expectSameAsAlone(model: EmbeddingModel, rows: readonly EmbedRow[], batch: string): void {
  rawVectors(model, rows).forEach((vector, i) => {
    const [alone] = rawVectors(model, [rows[i]!]);
    expectClose(vector, alone!, `${batch}, row ${i} of ${rows[i]!.ids.length} tokens`);
  });
}

const POOLINGS = ["bert-mean", "bert-max", "bert-weightedmean", "bert-cls-dense", "bert-lasttoken"];

describe.each(POOLINGS)("%s: a row gives the vector it gives alone", (name) => {
  const model = loadEmbeddingModel({ directory: fixture(name), device });
  const lengths = [1, 2, 31, 32, 33, 64, model.facts.maxLength];
  const rows = lengths.map((length) => rowOfLength(model, length));

  test("in a batch of mixed lengths, in any order", () => {
    expectSameAsAlone(model, rows, "ascending");
    expectSameAsAlone(model, rows.toReversed(), "descending");
    for (const seed of [1, 2, 3]) expectSameAsAlone(model, shuffled(rows, seed), `seed ${seed}`);
  });

  test("beside every other length", () => {
    for (const row of rows)
      for (const other of rows) expectSameAsAlone(model, [row, other], "pair");
  });

  test("among rows of its own length and in many copies", () => {
    const [short, long] = [rows[1]!, rows.at(-1)!];
    expectSameAsAlone(model, [long, long, long], "copies");
    expectSameAsAlone(model, [short, long, short, long, short], "interleaved copies");
    expectSameAsAlone(model, Array(40).fill(short), "40 copies");
  });
});

test("batches leave no tensors behind", () => {
  const model = loadEmbeddingModel({ directory: fixture("bert-mean"), device });
  const rows = [3, 20, 50].map((length) => rowOfLength(model, length));
  model.start(rows).read();
  const before = mx.activeBytes();
  for (let i = 0; i < 50; i++) model.start(rows).read();
  expect(mx.activeBytes()).toBe(before);
});
