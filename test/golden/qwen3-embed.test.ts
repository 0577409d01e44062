/** The Qwen3 embedder against reference numbers, alone, in one batch and shuffled. */
import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { readCheckpoint } from "../../src/checkpoint/checkpoint.ts";
import { Weights } from "../../src/checkpoint/weights.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import { qwen3 } from "../../src/models/qwen3.ts";
import { raggedBatch } from "../../src/nn/ragged.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { expectClose, largestDifference, rawVectors, reference, rowOf } from "./reference.ts";
import { shuffled } from "./reference.ts";

const device = mx.openDevice("cpu");
const directory = fixture("qwen3-embed");
const { cases, tolerance, ...facts } = reference("qwen3-embed");
const model = loadEmbeddingModel({ directory, device });
const rows = cases.map((wanted) => rowOf(model, wanted));

test("the facts are those of the files", () => {
  expect(model).toMatchObject({
    facts: { family: "qwen3", maxLength: facts.max_length },
    dim: facts.dim,
    pooling: facts.pooling,
    normalization: "l2",
  });
});

test("token ids are those of the reference tokenizer, the closing token included", () => {
  rows.forEach((row, i) => expect([...row.ids], cases[i]!.name).toEqual(cases[i]!.token_ids));
});

describe("every case gives the reference vector", () => {
  const expectReferenceVectors = (indices: readonly number[]) => {
    const vectors = rawVectors(
      model,
      indices.map((index) => rows[index]!),
    );
    indices.forEach((index, i) => {
      const { name, embedding, unnormalized = embedding } = cases[index]!;
      expectClose(vectors[i]!, unnormalized, `${name}: before normalisation`, tolerance);
      expectClose(model.finish(vectors[i]!, {}), embedding, `${name}: embedding`, tolerance);
    });
  };
  const all = [...rows.keys()];

  test("alone", () => all.forEach((index) => expectReferenceVectors([index])));
  test("in one batch", () => expectReferenceVectors(all));
  test.each([1, 2, 3])("in another order, seed %d", (seed) =>
    expectReferenceVectors(shuffled(all, seed)),
  );
});

test("the network's hidden states are the reference's, token by token", () => {
  const { config } = readCheckpoint(directory);
  const weights = Weights.open(directory, {
    prefixes: qwen3.weightPrefixes,
    computeDtype: "float32",
  });
  const encoder = qwen3.load(config, weights);
  weights.close();
  const withRows = cases.filter((wanted) => wanted.token_rows);
  expect(withRows).toHaveLength(2);
  const batch = raggedBatch(withRows.map(({ token_ids }) => ({ ids: Int32Array.from(token_ids) })));
  const hidden = mx.scope(() => encoder.forward(batch).toFloat32());
  const wanted = withRows.flatMap(({ token_rows }) => token_rows!);
  const width = encoder.hiddenSize;
  expect(hidden.length).toBe(wanted.length * width);
  wanted.forEach((row, token) => {
    const state = hidden.subarray(token * width, (token + 1) * width);
    expectClose(state, row, `token ${token}`, tolerance);
  });
});

test("a text gives the vector of its ids with the closing token, and another one without it", () => {
  const text = model.tokenize({ text: "ABCDEF" }, {});
  const closed = model.tokenize({ ids: text.ids }, {});
  const open = model.tokenize({ ids: text.ids.slice(0, -1) }, {});
  const [fromText, fromClosed, fromOpen] = rawVectors(model, [text, closed, open]);
  expectClose(fromText!, fromClosed!, "with the closing token");
  expect(largestDifference(fromText!, fromOpen!)).toBeGreaterThan(0.1);
});

test("an instruction is put in front in the family's format, which is that of the checkpoint's prompt", () => {
  const instruction = "Given a web search query, retrieve relevant passages that answer the query";
  const text = "coldest March on record";
  const instructed = model.tokenize({ text }, { instruction });
  const named = model.tokenize({ text }, { promptName: "query" });
  expect(instructed.ids).toEqual(named.ids);
  expect(model.tokenize({ text }, { instruction: "Find the month" }).ids).not.toEqual(named.ids);
});
