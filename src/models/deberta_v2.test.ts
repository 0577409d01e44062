import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointCopy } from "../../test/checkpoints.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { describeRefusedSettings, withSettings } from "../../test/fixtures/refused-settings.ts";
import { loadReranker } from "./load-reranker.ts";

const device = mx.openDevice("cpu");

describeRefusedSettings("rerank-deberta-v2", [
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ pooler_hidden_act: "quick_gelu" }, /pooler_hidden_act: unknown activation "quick_gelu"/],
  [{ relative_attention: false }, /relative_attention/],
  [{ pos_att_type: ["c2p"] }, /pos_att_type: expected "p2c" and "c2p"/],
  [{ pos_att_type: "c2p|p2c|p2p" }, /pos_att_type: expected "p2c" and "c2p"/],
  [{ share_att_key: false }, /share_att_key/],
  [{ norm_rel_ebd: "none" }, /norm_rel_ebd: expected "layer_norm"/],
  [{ norm_rel_ebd: undefined }, /norm_rel_ebd/],
  [{ position_buckets: -1 }, /position_buckets/],
  [{ position_biased_input: true }, /position_biased_input/],
  [{ type_vocab_size: 2 }, /type_vocab_size/],
  [{ conv_kernel_size: 3, conv_act: "gelu" }, /conv_kernel_size/],
  [{ embedding_size: 24 }, /embedding_size: 24 is not supported; it must be 36/],
  [{ attention_head_size: 16 }, /attention_head_size: 16 is not supported; it must be 12/],
  [{ num_attention_heads: 5 }, /num_attention_heads: 5 does not divide hidden_size 36/],
]);

const load = (directory: string) => loadReranker({ directory, device });

function logit(directory: string): number[] {
  const model = load(directory);
  return [...model.start([model.prepare("a query").pair("a document")]).read()];
}

test("the settings that older files spell as names between bars", () => {
  const wanted = logit(fixture("rerank-deberta-v2"));
  expect(logit(withSettings("rerank-deberta-v2", { pos_att_type: "p2c|c2p" }))).toEqual(wanted);
  const same = { conv_kernel_size: 0, embedding_size: 36, attention_head_size: 12 };
  expect(logit(withSettings("rerank-deberta-v2", same))).toEqual(wanted);
});

test("where the tokenizer states no limit, pairs are as long as in training; distances have no end", () => {
  const copy = new CheckpointCopy("rerank-deberta-v2");
  expect(load(copy.directory).facts.maxLength).toBe(96);
  copy.set("tokenizer_config.json", { model_max_length: 1e30 });
  expect(load(copy.directory).facts.maxLength).toBe(64);
  copy.set("tokenizer_config.json", { model_max_length: 100_000 });
  expect(load(copy.directory).facts.maxLength).toBe(8192);
});
