import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import type { Encoder } from "../nn/encoder.ts";
import { gatedMlp } from "../nn/gated-mlp.ts";
import { linear, residualLinear } from "../nn/linear.ts";
import { layerNorm, type LayerNorm, type Norm, unbiasedLayerNorm } from "../nn/norms.ts";
import { preNormLayer } from "../nn/pre-norm-layer.ts";
import type { Mask, RaggedBatch } from "../nn/ragged.ts";
import { inverseFrequencies } from "../nn/rope.ts";
import { selfAttention, type SelfAttention } from "../nn/self-attention.ts";
import { classifier, oneLabel } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { type LayerKind, surroundingsOf } from "./layer-kind.ts";
import { normedTables, type NormedTables } from "./lookup-table.ts";
import {
  type ModernBertConfig,
  modernBertConfig,
  modernBertLayerKinds,
  ropeTheta,
} from "./modernbert-config.ts";

/** ModernBERT (Warner et al. 2024). */
export const modernbert: ModelFamily = {
  modelType: "modernbert",
  publishedAs: "ModernBERT Embed, GTE ModernBERT, Granite R2",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["model."],
  load: (config, weights) => new ModernBert(parse(config), weights),
  loadClassifier(config, weights) {
    const parsed = parse(config);
    const { hidden_size: width, classifier_bias: bias } = parsed;
    const dense = linear(weights, "head.dense", { inputs: width, outputs: width, bias });
    const act = activation(parsed.classifier_activation, "config.json: classifier_activation");
    const norm = normOf(parsed, weights, "head.norm");
    return classifier(new ModernBert(parsed, weights), {
      pooling: parsed.classifier_pooling,
      transform: (pooled) => norm(act(dense(pooled))),
      projection: oneLabel(weights, "classifier", { inputs: width, bias: true }),
    });
  },
};

const parse = (config: unknown) => parseConfig(modernBertConfig, config);

class ModernBert implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #config: ModernBertConfig;
  readonly #embed: NormedTables;
  readonly #layers: readonly { readonly kind: LayerKind; readonly run: SelfAttention }[];
  readonly #finalNorm: Norm;

  constructor(config: ModernBertConfig, weights: Weights) {
    const { hidden_size: width, vocab_size: rows } = config;
    this.hiddenSize = width;
    this.vocabSize = rows;
    this.maxPositions = config.max_position_embeddings;
    this.#config = config;
    const tokens = { name: "embeddings.tok_embeddings", rows };
    const norm = normOf(config, weights, "embeddings.norm");
    this.#embed = normedTables(weights, [tokens], width, norm);
    this.#layers = modernBertLayerKinds(config).map((kind, index) => ({
      kind,
      run: loadLayer(config, weights, index),
    }));
    this.#finalNorm = normOf(config, weights, "final_norm");
  }

  forward(batch: RaggedBatch): Tensor {
    const surroundings = surroundingsOf(batch, (kind) => this.#shapeOf(kind));
    const embedded = this.#embed(batch.ids);
    const hidden = this.#layers.reduce((x, { kind, run }) => {
      const { attend, rotate } = surroundings[kind];
      return run(x, attend, rotate);
    }, embedded);
    return mx.astype(this.#finalNorm(hidden), "float32");
  }

  #shapeOf(kind: LayerKind) {
    const { num_attention_heads: heads, local_attention: window } = this.#config;
    const headDim = this.hiddenSize / heads;
    // The window is as wide as local_attention, half of it on each side.
    const mask: Mask =
      kind === "full_attention"
        ? { kind: "full" }
        : { kind: "window", radius: Math.floor(window / 2) };
    const rope = { frequencies: inverseFrequencies(headDim, ropeTheta(this.#config, kind)) };
    return { heads, kvHeads: heads, scale: 1 / Math.sqrt(headDim), mask, rope };
  }
}

function loadLayer(config: ModernBertConfig, weights: Weights, index: number): SelfAttention {
  const { hidden_size: width, intermediate_size: inner, attention_bias: bias } = config;
  const name = `layers.${index}`;
  const square = { inputs: width, outputs: width, bias };
  return preNormLayer({
    // The first layer's input has just been normalised.
    attentionNorm: index === 0 ? (x) => x : normOf(config, weights, `${name}.attn_norm`),
    attention: selfAttention(weights, { queryKeyValue: `${name}.attn.Wqkv` }, square),
    attentionOutput: residualLinear(weights, `${name}.attn.Wo`, square),
    mlpNorm: normOf(config, weights, `${name}.mlp_norm`),
    mlp: gatedMlp(
      weights,
      { gateUp: `${name}.mlp.Wi`, down: `${name}.mlp.Wo` },
      {
        ...{ width, inner, bias: config.mlp_bias },
        activation: activation(config.hidden_activation, "config.json: hidden_activation"),
      },
    ),
  });
}

function normOf(config: ModernBertConfig, weights: Weights, name: string): LayerNorm {
  const norm = config.norm_bias ? layerNorm : unbiasedLayerNorm;
  return norm(weights, name, config.hidden_size, config.norm_eps);
}
