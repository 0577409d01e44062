import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { copyOfFixture, editJson } from "../../test/fixtures/fixtures.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { loadEmbeddingModel } from "./load.ts";

const device = mx.openDevice("cpu");

/** Loads bert-mean with keys of its config.json changed; undefined removes a key. */
function loadWith(changes: Record<string, unknown>) {
  const directory = copyOfFixture("bert-mean");
  editJson<Record<string, unknown>>(join(directory, "config.json"), (config) =>
    Object.assign(config, changes),
  );
  return () => loadEmbeddingModel({ directory, device });
}

describe("a setting that would change the numbers stops the load by name", () => {
  test.each([
    [{ model_type: "bart" }, /model_type "bart" is not supported \(known: bert/],
    [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
    [{ position_embedding_type: "relative_key" }, /position_embedding_type/],
    [{ is_decoder: true }, /is_decoder/],
    [{ quantization: { bits: 4, group_size: 64 } }, /"quantization".*not supported/],
    [{ layer_norm_eps: "1e-12" }, /layer_norm_eps/],
    [{ num_attention_heads: 7 }, /num_attention_heads: 7 .*hidden_size 64/],
    [{ hidden_size: undefined }, /hidden_size/],
    [{ num_hidden_layers: 3 }, /encoder\.layer\.2\./],
    [{ intermediate_size: 100 }, /intermediate\.dense\.weight.*\[128, 64\].*\[100, 64\]/],
  ] as const)("%j", (changes, message) => {
    const load = loadWith(changes);
    expect(load).toThrow(CheckpointError);
    expect(load).toThrow(message);
  });
});

test("settings that the reference defaults may be absent", () => {
  const absent = { layer_norm_eps: undefined, type_vocab_size: undefined, hidden_act: undefined };
  const model = loadWith({ ...absent, position_embedding_type: null })();
  expect(model.start([model.tokenize({ text: "hello" }, {})]).read()).toHaveLength(64);
});
