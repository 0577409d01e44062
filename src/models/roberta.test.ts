import { expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { editTensors } from "../../test/fixtures/tensors.ts";
import { raggedBatch } from "../nn/ragged.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";
import { positionsAfterPadding } from "./padding-positions.ts";

const device = mx.openDevice("cpu");

const PAD = 1;
const row = (...ids: number[]) => ({ ids: Int32Array.from(ids) });

test("positions count the row's real tokens from behind the padding id", () => {
  const batch = raggedBatch([row(0, 7, 2), row(0, 9, 9, 9, 2), row(0)]);
  expect([...positionsAfterPadding(batch, PAD)]).toEqual([2, 3, 4, 2, 3, 4, 5, 6, 2]);
});

test("a padding token in the text gets the padding position and does not count", () => {
  const batch = raggedBatch([row(0, PAD, 7, PAD, PAD, 2), row(PAD, 5)]);
  expect([...positionsAfterPadding(batch, PAD)]).toEqual([2, 1, 3, 1, 1, 4, 1, 2]);
});

test("the position rows up to the padding id belong to no real token", () => {
  const directory = copyOfFixture("xlm-roberta-mean");
  editTensors(directory, (tensor, name) => {
    if (name !== "embeddings.position_embeddings.weight") return tensor;
    const factors = Float32Array.from({ length: tensor.shape[0]! }, (_, i) => (i <= PAD ? 1e3 : 1));
    return mx.multiply(tensor, mx.fromFloat32(factors, [factors.length, 1]));
  });
  const vectorOf = (from: string, ...ids: number[]) => {
    const model = loadEmbeddingModel({ directory: from, device });
    return [...model.start([model.tokenize(row(...ids), {})]).read()];
  };
  const original = fixture("xlm-roberta-mean");
  expect(vectorOf(directory, 0, 5, 2)).toEqual(vectorOf(original, 0, 5, 2));
  expect(vectorOf(directory, 0, PAD, 2)).not.toEqual(vectorOf(original, 0, PAD, 2));
});

test.each([
  [{ num_attention_heads: 5 }, /num_attention_heads: 5 does not divide hidden_size/],
  [{ pad_token_id: -1 }, /pad_token_id/],
  [{ pad_token_id: 200 }, /length limit of -\d+ leaves no room for text/],
])("%j stops the load by name", (changes, message) => {
  const directory = copyOfFixture("roberta-mean");
  editJson<object>(join(directory, "config.json"), (config) => Object.assign(config, changes));
  expect(() => loadEmbeddingModel({ directory, device })).toThrow(message);
});

test("texts may be as long as the rows behind the padding id", () => {
  const directory = copyOfFixture("roberta-mean");
  editJson<object>(join(directory, "sentence_bert_config.json"), (config) =>
    Object.assign(config, { max_seq_length: 512 }),
  );
  editJson<object>(join(directory, "tokenizer_config.json"), (config) =>
    Object.assign(config, { model_max_length: 512 }),
  );
  const model = loadEmbeddingModel({ directory, device });
  expect(model.facts.maxLength).toBe(130 - PAD - 1);
  const full = model.tokenize({ text: "word ".repeat(300) }, {});
  expect(full.ids).toHaveLength(model.facts.maxLength);
  expect(model.start([full]).read().every(Number.isFinite)).toBe(true);
});
