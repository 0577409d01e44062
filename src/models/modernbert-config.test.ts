import { describe, expect, test } from "bun:test";
import { CheckpointError } from "../checkpoint/error.ts";
import { parseConfig } from "./config.ts";
import { modernBertLayerKinds, modernBertConfig, ropeTheta } from "./modernbert-config.ts";

const SIZES = {
  vocab_size: 100,
  hidden_size: 32,
  num_hidden_layers: 4,
  num_attention_heads: 2,
  intermediate_size: 48,
};
const [FULL, SLIDING] = ["full_attention", "sliding_attention"] as const;

const parse = (settings: object = {}) => parseConfig(modernBertConfig, { ...SIZES, ...settings });

const thetas = (settings: object) =>
  [FULL, SLIDING].map((kind) => ropeTheta(parse(settings), kind));

test("every n-th layer from the first is global, 3 by default, unless layer_types says otherwise", () => {
  expect(modernBertLayerKinds(parse())).toEqual([FULL, SLIDING, SLIDING, FULL]);
  expect(modernBertLayerKinds(parse({ global_attn_every_n_layers: 2 }))).toEqual([
    FULL,
    SLIDING,
    FULL,
    SLIDING,
  ]);
  const stated = [SLIDING, FULL, FULL, FULL];
  expect(
    modernBertLayerKinds(parse({ layer_types: stated, global_attn_every_n_layers: 2 })),
  ).toEqual(stated);
});

test("both spellings of the rotation bases", () => {
  expect(thetas({})).toEqual([160_000, 10_000]);
  expect(thetas({ global_rope_theta: 500, local_rope_theta: 50 })).toEqual([500, 50]);
  expect(thetas({ global_rope_theta: 500, local_rope_theta: null })).toEqual([500, 500]);
  const rope_parameters = {
    [FULL]: { rope_type: "default", rope_theta: 700 },
    [SLIDING]: { rope_type: "default", rope_theta: 70 },
  };
  expect(thetas({ rope_parameters })).toEqual([700, 70]);
});

describe("what is unknown or does not fit stops the load by name", () => {
  test.each([
    [{ layer_types: [FULL, "chunked_attention", FULL, FULL] }, "layer_types.1"],
    [{ layer_types: [FULL] }, "layer_types: 1 entries for 4 layers"],
    [{ rope_parameters: { [FULL]: { rope_type: "yarn", rope_theta: 1 } } }, "rope_type"],
    [{ rope_scaling: { type: "linear", factor: 2 } }, "rope_scaling"],
    [{ classifier_pooling: "max" }, "classifier_pooling"],
    [
      { num_attention_heads: 3 },
      "num_attention_heads: 3 does not divide hidden_size 32 into even parts",
    ],
  ])("%j", (settings, message) => {
    expect(() => modernBertLayerKinds(parse(settings))).toThrow(CheckpointError);
    expect(() => modernBertLayerKinds(parse(settings))).toThrow(message);
  });
});
