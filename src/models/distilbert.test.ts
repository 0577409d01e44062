import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { describeRefusedSettings } from "../../test/fixtures/refused-settings.ts";
import { CheckpointCopy, renamed } from "../../test/checkpoints.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

describeRefusedSettings("distilbert-mean", [
  [{ activation: "quick_gelu" }, /config\.json: activation: unknown activation "quick_gelu"/],
  [{ n_heads: 5 }, /n_heads: 5 does not divide dim 36/],
  [{ dim: undefined }, /dim: /],
  [{ n_layers: 3 }, /transformer\.layer\.2\./],
  [{ hidden_dim: 60 }, /ffn\.lin1\.weight.*\[80, 36\].*\[60, 36\]/],
]);

test("names with the prefix of a language model, and its head, load as well", () => {
  const vector = (directory: string) => {
    const model = loadEmbeddingModel({ directory, device });
    return model.start([model.tokenize({ text: "hello" }, {})]).read();
  };
  const copy = new CheckpointCopy("distilbert-mean").tensors((table) => {
    const prefixed = renamed(table, (name) => `distilbert.${name}`);
    const bias = table.get("embeddings.LayerNorm.bias")!;
    return prefixed.set("vocab_layer_norm.bias", bias).set("vocab_transform.bias", bias);
  });
  expect(vector(copy.directory)).toEqual(vector(fixture("distilbert-mean")));
});
