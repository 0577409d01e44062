import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointError } from "../../src/checkpoint/error.ts";
import { loadEmbeddingModel } from "../../src/models/load-embedder.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { describeEmbedders } from "./embedder.ts";

const device = mx.openDevice("cpu");

describeEmbedders("bert", [
  "bert-mean",
  "bert-cls",
  "bert-cls-dense",
  "bert-max",
  "bert-lasttoken",
  "bert-mean-sqrt-len",
  "bert-weightedmean",
  "bert-no-prompt-pooling",
  "bert-prefixed",
  "bert-sharded",
  "bert-f16",
  "bert-bf16",
]);

test("a checkpoint that only has pytorch_model.bin is refused by that name", () => {
  const load = () => loadEmbeddingModel({ directory: fixture("bert-pytorch-bin"), device });
  expect(load).toThrow(CheckpointError);
  expect(load).toThrow(/pytorch_model\.bin/);
});
