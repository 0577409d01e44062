import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import { attention } from "../nn/attention.ts";
import type { Encoder } from "../nn/encoder.ts";
import { gatedMlp } from "../nn/gated-mlp.ts";
import { residualLinear, type ResidualLinear } from "../nn/linear.ts";
import { mlp } from "../nn/mlp.ts";
import { rmsNorm, type Norm } from "../nn/norms.ts";
import { preNormLayer } from "../nn/pre-norm-layer.ts";
import { longestRow, type RaggedBatch } from "../nn/ragged.ts";
import { relativeBias, type RelativeBias } from "../nn/relative-bias.ts";
import { RowLayout } from "../nn/row-layout.ts";
import { selfAttention, type SelfAttention } from "../nn/self-attention.ts";
import { parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { lookupTable, type LookupTable } from "./lookup-table.ts";
import { UNSTATED_MAX_POSITIONS } from "./max-length.ts";

const configSchema = z
  .object({
    vocab_size: size,
    d_model: size,
    d_kv: size,
    d_ff: size,
    num_layers: size,
    num_heads: size,
    relative_attention_num_buckets: size.min(4).multipleOf(2).default(32),
    relative_attention_max_distance: size.default(128),
    layer_norm_epsilon: z.number().positive().default(1e-6),
    /** Of T5 and of T5 1.1. */
    feed_forward_proj: z.enum(["relu", "gated-gelu"]).default("relu"),
    is_decoder: z.literal(false).nullish(),
  })
  .check(({ value, issues }) => {
    const { relative_attention_num_buckets: buckets, relative_attention_max_distance } = value;
    if (relative_attention_max_distance > buckets / 4) return;
    issues.push({
      ...{ code: "custom", input: relative_attention_max_distance },
      path: ["relative_attention_max_distance"],
      message: `${relative_attention_max_distance} is too small for ${buckets} buckets`,
    });
  });

type T5Config = z.output<typeof configSchema>;

/** The encoder of T5 (Raffel et al. 2020). */
export const t5: ModelFamily = {
  modelType: "t5",
  publishedAs: "Sentence-T5, GTR, Instructor; the encoder of T5 and T5 1.1",
  lengthLimit: String(UNSTATED_MAX_POSITIONS),
  defaultPooling: "mean",
  weightPrefixes: [],
  needsFloat32: true,
  load: (config, weights) => new T5Encoder(parseConfig(configSchema, config), weights),
};

class T5Encoder implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions = UNSTATED_MAX_POSITIONS;
  readonly #heads: number;
  readonly #embed: LookupTable;
  readonly #relativeBias: RelativeBias;
  readonly #layers: readonly SelfAttention[];
  readonly #finalNorm: Norm;

  constructor(config: T5Config, weights: Weights) {
    const { vocab_size: rows, d_model: width, num_heads: heads, layer_norm_epsilon: eps } = config;
    this.hiddenSize = width;
    this.vocabSize = rows;
    this.#heads = heads;
    // One table under two names, of which files may have either.
    const table = weights.has("shared.weight") ? "shared" : "encoder.embed_tokens";
    this.#embed = lookupTable(weights, table, rows, width);
    const firstAttention = "encoder.block.0.layer.0.SelfAttention";
    this.#relativeBias = relativeBias(weights, `${firstAttention}.relative_attention_bias`, {
      ...{ heads, rows: config.relative_attention_num_buckets },
      buckets: config.relative_attention_num_buckets,
      maxDistance: config.relative_attention_max_distance,
    });
    this.#layers = Array.from({ length: config.num_layers }, (_, layer) =>
      loadLayer(config, weights, `encoder.block.${layer}.layer`),
    );
    this.#finalNorm = rmsNorm(weights, "encoder.final_layer_norm", width, eps);
  }

  forward(batch: RaggedBatch): Tensor {
    const attend = attention(new RowLayout(batch), {
      heads: this.#heads,
      kvHeads: this.#heads,
      scale: 1, // part of the initial weights
      mask: { kind: "full" },
      relativeBias: this.#relativeBias(longestRow(batch)),
    });
    const hidden = this.#layers.reduce((x, layer) => layer(x, attend), this.#embed(batch.ids));
    return mx.astype(this.#finalNorm(hidden), "float32");
  }
}

function loadLayer(config: T5Config, weights: Weights, name: string): SelfAttention {
  const { d_model: width, layer_norm_epsilon: eps } = config;
  const heads = config.num_heads * config.d_kv;
  const projection = (part: string) => `${name}.0.SelfAttention.${part}`;
  const names = { query: projection("q"), key: projection("k"), value: projection("v") };
  return preNormLayer({
    attentionNorm: rmsNorm(weights, `${name}.0.layer_norm`, width, eps),
    attention: selfAttention(weights, names, { inputs: width, outputs: heads, bias: false }),
    attentionOutput: residualLinear(weights, projection("o"), {
      ...{ inputs: heads, outputs: width, bias: false },
    }),
    mlpNorm: rmsNorm(weights, `${name}.1.layer_norm`, width, eps),
    mlp: loadMlp(config, weights, `${name}.1.DenseReluDense`),
  });
}

function loadMlp(config: T5Config, weights: Weights, name: string): ResidualLinear {
  const { d_model: width, d_ff: inner, feed_forward_proj: form } = config;
  const shape = (act: string) => ({
    ...{ width, inner, bias: false },
    activation: activation(act, "config.json: feed_forward_proj"),
  });
  const output = `${name}.wo`;
  if (form === "relu") return mlp(weights, { input: `${name}.wi`, output }, shape("relu"));
  // Called gelu, it is the tanh form that the reference computes.
  const names = { gate: `${name}.wi_0`, up: `${name}.wi_1`, down: output };
  return gatedMlp(weights, names, shape("gelu_new"));
}
