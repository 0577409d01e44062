/** Settings of Gemma 3 and EmbeddingGemma 2 that no fixture has, and those that stop the load. */
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { CheckpointCopy, referenceCase, renamed } from "../../test/checkpoints.ts";
import { describeRefusedSettings } from "../../test/fixtures/refused-settings.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";

const device = mx.openDevice("cpu");

type Settings = Record<string, unknown>;

const load = ({ directory }: CheckpointCopy) => loadEmbeddingModel({ directory, device });

function vectorOf(copy: CheckpointCopy, ids: readonly number[]): Float32Array {
  const model = load(copy);
  return model.start([model.tokenize({ ids: Int32Array.from(ids) }, {})]).read();
}

/** Gemma 3 with the last token alone as its vector. */
function bareGemma3(config: Settings): CheckpointCopy {
  return new CheckpointCopy("gemma3-embed")
    .set("config.json", config)
    .set("1_Pooling/config.json", {
      pooling_mode_mean_tokens: false,
      pooling_mode_lasttoken: true,
    })
    .write("modules.json", [
      { type: "sentence_transformers.models.Transformer", path: "" },
      { type: "sentence_transformers.models.Pooling", path: "1_Pooling" },
    ]);
}

const absent = undefined;

test.each([
  [
    { use_bidirectional_attention: false, rope_scaling: { rope_type: "linear", factor: 8 } },
    [-0.6874797, -0.742597, 0.1044242, 0.5940357, -0.6143036, 0.5802219, -0.2072077, -0.06895349],
  ],
  [
    {
      layer_types: absent,
      sliding_window_pattern: 2,
      sliding_window: 9,
      rope_theta: absent,
      rope_local_base_freq: absent,
      query_pre_attn_scalar: absent,
    },
    [-0.4234944, -1.219425, -0.3832991, 0.4887299, -0.8213498, 0.08330693, 0.3056344, -0.04834274],
  ],
] as const)(
  "Gemma 3 with %j gives the start of the vector of transformers 5.24.0",
  (config, start) => {
    const vector = vectorOf(bareGemma3(config), referenceCase("gemma3-embed", "long").token_ids);
    start.forEach((wanted, i) => expect(Math.abs(vector[i]! - wanted)).toBeLessThan(1e-5 * 1.3));
  },
);

test("Gemma 3: both spellings of the rope settings give the same vector", () => {
  const { token_ids: ids } = referenceCase("gemma3-embed", "medium");
  const newer = {
    rope_theta: absent,
    rope_local_base_freq: absent,
    rope_parameters: {
      full_attention: { rope_type: "default", rope_theta: 1e6 },
      sliding_attention: { rope_type: "default", rope_theta: 1e4 },
    },
  };
  const wanted = vectorOf(bareGemma3({}), ids);
  expect(vectorOf(bareGemma3(newer), ids)).toEqual(wanted);
  expect(vectorOf(bareGemma3({ rope_local_base_freq: 2e4 }), ids)).not.toEqual(wanted);
});

function gemma2(text: Settings): CheckpointCopy {
  return new CheckpointCopy("embedding-gemma2-text").edit("config.json", (config) => ({
    ...config,
    text_config: { ...z.looseObject({}).parse(config.text_config), ...text },
  }));
}

describe("EmbeddingGemma 2", () => {
  const ids = referenceCase("embedding-gemma2-text", "medium").token_ids;

  test("reads what stands for a picture, a video or a sound as padding", () => {
    const copy = new CheckpointCopy("embedding-gemma2-text").set("config.json", {
      image_token_id: 500,
      video_token_id: 501,
      audio_token_id: 502,
    });
    const padded = vectorOf(copy, [2, 0, 0, 0, 7, 1]);
    expect(vectorOf(copy, [2, 500, 501, 502, 7, 1])).toEqual(padded);
    expect(vectorOf(gemma2({}), [2, 500, 501, 502, 7, 1])).not.toEqual(padded);
  });

  test("lets the last layer see the whole text whatever the file says", () => {
    const sliding = Array<string>(4).fill("sliding_attention");
    expect(vectorOf(gemma2({ layer_types: sliding }), ids)).toEqual(vectorOf(gemma2({}), ids));
  });

  test("is found under the longer names too, and its towers are left alone", () => {
    const copy = gemma2({}).tensors((table) =>
      renamed(table, (name) => `model.${name}`).set(
        "model.vision_tower.x",
        table.values().next().value!,
      ),
    );
    expect(vectorOf(copy, ids)).toEqual(vectorOf(gemma2({}), ids));
  });
});

describeRefusedSettings("gemma3-embed", [
  [{ attn_logit_softcapping: 50 }, /attn_logit_softcapping/],
  [{ hidden_activation: "quick_gelu" }, /hidden_activation: unknown activation "quick_gelu"/],
  [{ layer_types: ["full_attention"] }, /layer_types: 1 entries for 4 layers/],
  [{ layer_types: Array<string>(4).fill("chunked_attention") }, /layer_types\.0/],
  [{ use_bidirectional_attention: "vision" }, /use_bidirectional_attention/],
  [{ is_causal: false }, /is_causal/],
  [{ architectures: ["Gemma3ForConditionalGeneration"] }, /"Gemma3ForConditionalGeneration"/],
  [{ rope_scaling: { rope_type: "dynamic", factor: 2 } }, /rope_scaling\.rope_type: "dynamic"/],
  [{ rope_parameters: { rope_type: "default", rope_theta: 1e6 } }, /rope_parameters/],
  [{ attention_bias: true }, /q_proj\.bias.*missing/],
  [{ quantization: { bits: 7 } }, /quantization: bits: 7/],
]);

const proportional = { rope_type: "proportional", rope_theta: 1e6, partial_rotary_factor: 0.25 };

describe("EmbeddingGemma 2: a setting that would change the numbers stops the load by name", () => {
  test.each([
    [{ per_layer_config: absent }, /text_config: per_layer_config/],
    [{ per_layer_config: { 3: { head_dim: 16, num_attention_heads: 8 } } }, /num_attention_heads/],
    [
      { per_layer_config: { 2: { head_dim: 16 } } },
      /per_layer_config\.2: sliding_attention layers/,
    ],
    [{ per_layer_config: { 3: { num_key_value_heads: 3 } } }, /num_key_value_heads 3 does not div/],
    [{ rope_parameters: { full_attention: proportional } }, /"proportional" is not supported/],
    [{ embedding_dim: 48 }, /embedding_projection\.weight.*\[56, 48\]/],
    [{ hidden_size: absent }, /text_config: hidden_size/],
  ] as const)("%j", (settings, message) => {
    expect(() => load(gemma2(settings))).toThrow(CheckpointError);
    expect(() => load(gemma2(settings))).toThrow(message);
  });
});
