import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { copyOfFixture, editJson, fixture } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { Weights } from "../checkpoint/weights.ts";
import { raggedBatch, type TokenRow } from "../nn/ragged.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";
import { loadPartialLanguageModel } from "./qwen3.ts";

const device = mx.openDevice("cpu");

/** Loads qwen3-embed with keys of its config.json changed; undefined removes a key. */
function loadWith(changes: Record<string, unknown>) {
  const directory = copyOfFixture("qwen3-embed");
  editJson<Record<string, unknown>>(join(directory, "config.json"), (config) =>
    Object.assign(config, changes),
  );
  return () => loadEmbeddingModel({ directory, device });
}

function vector(model: ReturnType<typeof loadEmbeddingModel>): Float32Array {
  return model.start([model.tokenize({ text: "coldest March on record" }, {})]).read();
}

describe("a setting that would change the numbers stops the load by name", () => {
  test.each([
    [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
    [{ rope_scaling: { type: "dynamic", factor: 2 } }, /rope_scaling\.rope_type: "dynamic" is not/],
    [{ rope_parameters: { rope_type: "longrope" } }, /rope_parameters\.rope_type: "longrope" is/],
    [{ rope_parameters: { rope_type: "linear", rope_theta: 1e4 } }, /rope_parameters\.factor/],
    [{ rope_parameters: { mrope_section: [8, 4, 4], rope_theta: 1e4 } }, /mrope_section/],
    [{ rope_parameters: { partial_rotary_factor: 0.5 } }, /partial_rotary_factor/],
    [{ rope_theta: undefined }, /rope_theta: is missing/],
    [{ use_sliding_window: true, sliding_window: 64 }, /use_sliding_window/],
    [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types\.1/],
    [{ is_causal: "no" }, /is_causal/],
    [{ architectures: ["Qwen3ForBlockDiffusion"] }, /architectures: "Qwen3ForBlockDiffusion"/],
    [{ attention_bias: "yes" }, /attention_bias/],
    [{ attention_bias: true }, /q_proj\.bias.*missing/],
    [{ num_key_value_heads: 3 }, /num_key_value_heads: 3 .*num_attention_heads 4/],
    [{ head_dim: 33 }, /head_dim/],
    [{ head_dim: 16 }, /q_proj\.weight.*\[128, 64\].*\[64, 64\]/],
    [{ num_hidden_layers: 3 }, /layers\.2\./],
    [{ quantization: { bits: 7, group_size: 64 } }, /quantization: bits: 7/],
    [{ hidden_size: undefined }, /hidden_size/],
  ] as const)("%j", (changes, message) => {
    const load = loadWith(changes);
    expect(load).toThrow(CheckpointError);
    expect(load).toThrow(message);
  });
});

test("both spellings of the rope settings give the same vector, another theta another one", () => {
  const wanted = vector(loadWith({})());
  const newer = { rope_theta: undefined, rope_scaling: undefined };
  const plain = { rope_type: "default", rope_theta: 1e6 };
  expect(vector(loadWith({ ...newer, rope_parameters: plain })())).toEqual(wanted);
  expect(vector(loadWith({ rope_scaling: { type: "default" } })())).toEqual(wanted);
  expect(vector(loadWith({ rope_theta: 1e4 })())).not.toEqual(wanted);
});

test("the position limit of the config counts, 8192 where there is none", () => {
  const limit = (positions: number | undefined) => {
    const directory = copyOfFixture("qwen3-embed");
    editJson<Record<string, unknown>>(join(directory, "config.json"), (config) =>
      Object.assign(config, { max_position_embeddings: positions }),
    );
    editJson<Record<string, unknown>>(join(directory, "tokenizer_config.json"), (config) =>
      Object.assign(config, { model_max_length: 131072 }),
    );
    return loadEmbeddingModel({ directory, device }).facts.maxLength;
  };
  expect(limit(40)).toBe(40);
  expect(limit(32768)).toBe(32768);
  expect(limit(undefined)).toBe(8192);
});

describe("rows that continue a cache", () => {
  const directory = fixture("rerank-qwen3");
  const weights = Weights.open(directory, { prefixes: ["model."], computeDtype: "float32" });
  const { decoder } = loadPartialLanguageModel(readCheckpoint(directory).config, weights);
  weights.close();

  const tokens = (length: number, seed: number) =>
    Int32Array.from({ length }, (_, i) => (seed * 97 + i * 31) % decoder.vocabSize);
  const states = (rows: readonly TokenRow[], past?: Parameters<typeof decoder.forward>[1]) =>
    mx.scope(() => decoder.forward(raggedBatch(rows), past).toFloat32());

  /** States of the last `length` tokens of one whole row. */
  const wholeRow = (ids: Int32Array, length: number) =>
    states([{ ids }]).slice(-length * decoder.hiddenSize);
  const joined = (...parts: Int32Array[]) => Int32Array.from(parts.flatMap((part) => [...part]));
  const expectSame = (actual: Float32Array, wanted: Float32Array) => {
    expect(actual.length).toBe(wanted.length);
    const peak = wanted.reduce((max, x) => Math.max(max, Math.abs(x)), 1);
    actual.forEach((x, i) => expect(Math.abs(x - wanted[i]!)).toBeLessThanOrEqual(1e-5 * peak));
  };

  test.each([1, 2, 50, 130])("of %d tokens: as if each row ran whole", (length) => {
    const before = tokens(length, 1);
    const past = decoder.prefill(before);
    expect(past.length).toBe(length);
    const rows = [40, 1, 7, 90, 41].map((own, i) => tokens(own, i + 2));
    const together = states(
      rows.map((ids) => ({ ids })),
      past,
    );
    let start = 0;
    for (const ids of rows) {
      const end = start + ids.length * decoder.hiddenSize;
      expectSame(together.slice(start, end), wholeRow(joined(before, ids), ids.length));
      start = end;
    }
    past.free();
  });

  test("a cache grown piece by piece equals one made at once", () => {
    const pieces = [30, 1, 17].map((length, i) => tokens(length, i));
    const first = decoder.prefill(pieces[0]!);
    const second = decoder.prefill(pieces[1]!, first);
    const third = decoder.prefill(pieces[2]!, second);
    expect([first, second, third].map(({ length }) => length)).toEqual([30, 31, 48]);
    const ids = tokens(9, 5);
    expectSame(states([{ ids }], third), wholeRow(joined(...pieces, ids), 9));
    // Growing left the shorter ones as they were.
    expectSame(states([{ ids }], first), wholeRow(joined(pieces[0]!, ids), 9));
    for (const cache of [first, second, third]) cache.free();
  });

  test("freed caches leave nothing behind", () => {
    const run = () => {
      const past = decoder.prefill(tokens(60, 3));
      const longer = decoder.prefill(tokens(5, 4), past);
      states([{ ids: tokens(3, 1) }], longer);
      past.free();
      longer.free();
    };
    run();
    const before = mx.activeBytes();
    for (let i = 0; i < 20; i++) run();
    expect(mx.activeBytes()).toBe(before);
  });
});
