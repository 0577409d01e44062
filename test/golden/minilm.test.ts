/** The real all-MiniLM-L6-v2, which the test set-up puts into the local store. */
import { expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { DEFAULT_MODEL, findModel } from "../../src/hub/resolve.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import type { EmbeddingModel } from "../../src/pipeline/embedder.ts";
import { editJson, temporaryDirectory } from "../fixtures/fixtures.ts";
import { expectClose, rawVectors } from "./reference.ts";

const modelsDir = process.env.MLXCEL_MODELS_DIR;
const found = findModel(DEFAULT_MODEL, { modelsDir, env: process.env });
if (!found) throw new Error(`${DEFAULT_MODEL} is missing; npm test installs it`);
const { directory } = found;
const device = mx.openDevice("cpu");
const model = loadEmbeddingModel({ directory, device });

function embed(embedder: EmbeddingModel, texts: readonly string[], dimensions?: number) {
  const rows = texts.map((text) => embedder.tokenize({ text }, {}));
  return rawVectors(embedder, rows).map((raw) => embedder.finish(raw, { dimensions }));
}

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, component, i) => sum + component * b[i]!, 0);
}

test("similarities are those in the sentence-transformers documentation", () => {
  const [lovely, sunny, stadium] = embed(model, [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
  ]);
  expect(dot(lovely!, sunny!)).toBeCloseTo(0.666, 3);
  expect(dot(lovely!, stadium!)).toBeCloseTo(0.1046, 4);
  expect(dot(sunny!, stadium!)).toBeCloseTo(0.1411, 4);
});

test("the first 128 dimensions are those of text-embeddings-inference", () => {
  // That server computes this model's "gelu" in the tanh form, so the model is run in that form to compare.
  const tanhForm = temporaryDirectory("minilm");
  cpSync(directory, tanhForm, { recursive: true, dereference: true });
  editJson<{ hidden_act: string }>(join(tanhForm, "config.json"), (config) => {
    expect(config.hidden_act).toBe("gelu");
    config.hidden_act = "gelu_new";
  });
  const snapshot = [0.02096, 0.04566, -0.06651, 0.10739];

  const [vector] = embed(loadEmbeddingModel({ directory: tanhForm, device }), ["test"], 128);
  expect(vector).toHaveLength(128);
  expect(dot(vector!, vector!)).toBeCloseTo(1, 6);
  expectClose(vector!.slice(0, 4), snapshot, "tanh form");

  const [exact] = embed(model, ["test"], 128);
  snapshot.forEach((component, i) => expect(exact![i]).toBeCloseTo(component, 3));
});

test("limits and facts come from the files", () => {
  expect(model).toMatchObject({
    facts: { family: "bert", maxLength: 256, vocabSize: 30522 },
    dim: 384,
    pooling: "mean",
    normalization: "l2",
  });
});
