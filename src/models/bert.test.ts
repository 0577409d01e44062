import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { describeRefusedSettings, withSettings } from "../../test/fixtures/refused-settings.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

describeRefusedSettings("bert-mean", [
  [{ model_type: "bart" }, /model_type "bart" is not supported \(known: bert/],
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ position_embedding_type: "relative_key" }, /position_embedding_type/],
  [{ is_decoder: true }, /is_decoder/],
  [{ quantization: { bits: 7, group_size: 64 } }, /quantization: bits: 7/],
  [{ layer_norm_eps: "1e-12" }, /layer_norm_eps/],
  [{ num_attention_heads: 7 }, /num_attention_heads: 7 .*hidden_size 64/],
  [{ hidden_size: undefined }, /hidden_size/],
  [{ num_hidden_layers: 3 }, /encoder\.layer\.2\./],
  [{ intermediate_size: 100 }, /intermediate\.dense\.weight.*\[128, 64\].*\[100, 64\]/],
]);

test("settings that the reference defaults may be absent", () => {
  const directory = withSettings("bert-mean", {
    ...{ layer_norm_eps: undefined, type_vocab_size: undefined, hidden_act: undefined },
    position_embedding_type: null,
  });
  const model = loadEmbeddingModel({ directory, device });
  expect(model.start([model.tokenize({ text: "hello" }, {})]).read()).toHaveLength(64);
});
