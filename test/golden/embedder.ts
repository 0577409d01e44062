/** What every embedding checkpoint must do: give the reference's ids and vectors, alone and in any batch. */
import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { readCheckpoint } from "../../src/checkpoint/checkpoint.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import { type CpuDequantize, openWeights } from "../../src/models/open-weights.ts";
import { familyOf } from "../../src/models/registry.ts";
import type { Encoder } from "../../src/nn/encoder.ts";
import { raggedBatch } from "../../src/nn/ragged.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { expectClose, rawVectors, reference, rowOf, shuffled } from "./reference.ts";

const device = mx.openDevice("cpu");

interface EmbedderOptions {
  readonly cpuDequantize?: CpuDequantize;
  /** Directory of the base model where the fixtures are adapters. */
  readonly base?: string;
}

/** `family`: the `model_type` of all of these fixtures. */
export function describeEmbedders(
  family: string,
  fixtures: readonly string[],
  options: EmbedderOptions = {},
): void {
  describe.each(fixtures)("%s", (name) => embedsAsReference(name, family, options));
}

function embedsAsReference(name: string, family: string, options: EmbedderOptions): void {
  const { cases, tolerance, ...facts } = reference(name);
  const model = loadEmbeddingModel({ directory: fixture(name), device, ...options });
  const rows = cases.map((wanted) => rowOf(model, wanted));

  test("the facts are those of the files", () => {
    expect(model.facts.family).toBe(family);
    expect(model.dim).toBe(facts.dim);
    expect(model.facts.maxLength).toBe(facts.max_length);
    expect(model.pooling).toBe(facts.pooling.replace("_tokens", ""));
    expect(model.normalization).toBe(facts.normalized ? "l2" : "none");
  });

  test("token ids are those of the reference tokenizer", () => {
    rows.forEach((row, i) => {
      expect([...row.ids], cases[i]!.name).toEqual(cases[i]!.token_ids);
      expect(row.ids.length).toBe(cases[i]!.prompt_tokens);
    });
  });

  const expectReferenceVectors = (indices: readonly number[], vectors: Float32Array[]) =>
    indices.forEach((index, i) => {
      const { name: caseName, embedding, unnormalized = embedding } = cases[index]!;
      expectClose(vectors[i]!, unnormalized, `${caseName}: before normalisation`, tolerance);
      expectClose(model.finish(vectors[i]!, {}), embedding, `${caseName}: embedding`, tolerance);
    });

  test("every case alone gives the reference vector", () => {
    rows.forEach((row, i) => expectReferenceVectors([i], rawVectors(model, [row])));
  });

  test("all cases in one batch give the reference vectors", () => {
    expectReferenceVectors([...rows.keys()], rawVectors(model, rows));
  });

  test("all cases in another order give the reference vectors", () => {
    for (const seed of [1, 2, 3]) {
      const order = shuffled([...rows.keys()], seed);
      const batch = order.map((index) => rows[index]!);
      expectReferenceVectors(order, rawVectors(model, batch));
    }
  });

  test("the network's hidden states are the reference's, row by row and token by token", () => {
    const encoder = loadEncoder(name, options);
    const indices = [...cases.keys()].filter((index) => cases[index]!.token_rows);
    expect(indices).toHaveLength(2);
    const batch = raggedBatch(indices.map((index) => rows[index]!));
    const hidden = mx.scope(() => encoder.forward(batch).toFloat32());
    let token = 0;
    for (const index of indices) {
      for (const [position, wanted] of cases[index]!.token_rows!.entries()) {
        const start = token++ * encoder.hiddenSize;
        const state = hidden.subarray(start, start + encoder.hiddenSize);
        expectClose(state, wanted, `${cases[index]!.name}: token ${position}`, tolerance);
      }
    }
    expect(token * encoder.hiddenSize).toBe(hidden.length);
  });
}

/** The network alone, without what the pipeline does with its hidden states. */
function loadEncoder(name: string, options: EmbedderOptions): Encoder {
  const checkpoint = readCheckpoint(fixture(name), options.base);
  const family = familyOf(checkpoint);
  const { weights } = openWeights(checkpoint, family, { device, ...options });
  const encoder = family.load(checkpoint.config, weights);
  weights.close();
  return encoder;
}
