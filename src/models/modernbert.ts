import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation, type Activation } from "../nn/activations.ts";
import { attention, type Attention } from "../nn/attention.ts";
import type { Encoder } from "../nn/encoder.ts";
import { linear, type Linear } from "../nn/linear.ts";
import { layerNorm, unbiasedLayerNorm, type Norm } from "../nn/norms.ts";
import type { Mask, RaggedBatch } from "../nn/ragged.ts";
import { inverseFrequencies, rotation, type Rotation } from "../nn/rope.ts";
import { RowLayout } from "../nn/row-layout.ts";
import { classifier, oneLabel } from "./classifier.ts";
import { parseConfig } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { lookupTable, type LookupTable } from "./lookup-table.ts";
import {
  layerKinds,
  type LayerKind,
  type ModernBertConfig,
  modernBertConfig,
  ropeTheta,
} from "./modernbert-config.ts";

/** ModernBERT (Warner et al. 2024). */
export const modernbert: ModelFamily = {
  modelType: "modernbert",
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

const parse = (config: unknown) => parseConfig(modernBertConfig, config, "config.json");

/** What one kind of layer needs in a forward. */
interface Surroundings {
  readonly rotate: Rotation;
  readonly attend: Attention;
}

class ModernBert implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #config: ModernBertConfig;
  readonly #tokens: LookupTable;
  readonly #embeddingNorm: Norm;
  readonly #layers: readonly Layer[];
  readonly #finalNorm: Norm;

  constructor(config: ModernBertConfig, weights: Weights) {
    const { hidden_size: width, vocab_size: rows } = config;
    this.hiddenSize = width;
    this.vocabSize = rows;
    this.maxPositions = config.max_position_embeddings;
    this.#config = config;
    this.#tokens = lookupTable(weights, "embeddings.tok_embeddings", rows, width);
    this.#embeddingNorm = normOf(config, weights, "embeddings.norm");
    this.#layers = layerKinds(config).map((kind, index) => new Layer(config, weights, index, kind));
    this.#finalNorm = normOf(config, weights, "final_norm");
  }

  forward(batch: RaggedBatch): Tensor {
    const layout = new RowLayout(batch.lengths);
    const surroundings: Record<LayerKind, Surroundings> = {
      full_attention: this.#surroundings(batch, layout, "full_attention"),
      sliding_attention: this.#surroundings(batch, layout, "sliding_attention"),
    };
    const embedded = this.#embeddingNorm(this.#tokens(batch.ids));
    const hidden = this.#layers.reduce(
      (x, layer) => layer.forward(x, surroundings[layer.kind]),
      embedded,
    );
    return mx.astype(this.#finalNorm(hidden), "float32");
  }

  #surroundings({ positions }: RaggedBatch, layout: RowLayout, kind: LayerKind): Surroundings {
    const { num_attention_heads: heads, local_attention: window } = this.#config;
    const headDim = this.hiddenSize / heads;
    // The window is as wide as local_attention, half of it on each side.
    const mask: Mask =
      kind === "full_attention"
        ? { kind: "full" }
        : { kind: "window", radius: Math.floor(window / 2) };
    return {
      rotate: rotation(positions, inverseFrequencies(headDim, ropeTheta(this.#config, kind))),
      attend: attention(layout, { heads, kvHeads: heads, scale: 1 / Math.sqrt(headDim), mask }),
    };
  }
}

/** Pre-norm: each half adds f(LayerNorm(x)) to x. */
class Layer {
  readonly kind: LayerKind;
  readonly #attentionNorm: Norm;
  readonly #queryKeyValue: Linear;
  readonly #attentionOutput: Linear;
  readonly #mlpNorm: Norm;
  readonly #mlpInput: Linear;
  readonly #activation: Activation;
  readonly #mlpOutput: Linear;

  constructor(config: ModernBertConfig, weights: Weights, index: number, kind: LayerKind) {
    const { hidden_size: width, intermediate_size: inner } = config;
    const dense = (part: string, inputs: number, outputs: number, bias: boolean) =>
      linear(weights, `layers.${index}.${part}`, { inputs, outputs, bias });
    this.kind = kind;
    // The first layer's input has just been normalised.
    this.#attentionNorm =
      index === 0 ? (x) => x : normOf(config, weights, `layers.${index}.attn_norm`);
    this.#queryKeyValue = dense("attn.Wqkv", width, 3 * width, config.attention_bias);
    this.#attentionOutput = dense("attn.Wo", width, width, config.attention_bias);
    this.#mlpNorm = normOf(config, weights, `layers.${index}.mlp_norm`);
    this.#mlpInput = dense("mlp.Wi", width, 2 * inner, config.mlp_bias);
    this.#activation = activation(config.hidden_activation, "config.json: hidden_activation");
    this.#mlpOutput = dense("mlp.Wo", inner, width, config.mlp_bias);
  }

  /** [N, H] -> [N, H] */
  forward(x: Tensor, { rotate, attend }: Surroundings): Tensor {
    // [N, H] -> [N, 3 * H] -> three times [N, H]
    const [q, k, v] = mx.split(this.#queryKeyValue(this.#attentionNorm(x)), 3, 1);
    const context = attend(rotate(q!), rotate(k!), v!);
    const attended = mx.add(x, this.#attentionOutput(context));
    // [N, H] -> [N, 2 * inner] -> twice [N, inner] -> [N, H]
    const [gate, up] = mx.split(this.#mlpInput(this.#mlpNorm(attended)), 2, 1);
    const inner = mx.multiply(this.#activation(gate!), up!);
    return mx.add(attended, this.#mlpOutput(inner));
  }
}

function normOf(config: ModernBertConfig, weights: Weights, name: string): Norm {
  const norm = config.norm_bias ? layerNorm : unbiasedLayerNorm;
  return norm(weights, name, config.hidden_size, config.norm_eps);
}
