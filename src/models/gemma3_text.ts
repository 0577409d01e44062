import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import type { Encoder } from "../nn/encoder.ts";
import { type Norm, offsetRmsNorm } from "../nn/norms.ts";
import type { Mask, RaggedBatch } from "../nn/ragged.ts";
import type { Rope } from "../nn/rope.ts";
import { parseConfig, size } from "./config.ts";
import { readBidirectional } from "./decoder-mask.ts";
import { readDecoderSizes } from "./decoder-sizes.ts";
import type { ModelFamily } from "./family.ts";
import {
  GemmaLayer,
  gemmaLayerKinds,
  type GemmaLayerShape,
  layerKindKeys,
  scaledEmbeddings,
} from "./gemma-layer.ts";
import { byLayerKind, type LayerKind, surroundingsOf } from "./layer-kind.ts";
import { lookupTable, type LookupTable } from "./lookup-table.ts";
import { readLayerRopes } from "./rope-config.ts";

/** Gemma 3 without images (Gemma Team 2025), as EmbeddingGemma is: in both directions. */
export const gemma3Text: ModelFamily = {
  modelType: "gemma3_text",
  publishedAs: "EmbeddingGemma",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["model."],
  needsFloat32: true,
  load: (config, weights) => new Gemma3(readShape(config), weights),
};

const configSchema = z.looseObject({
  ...layerKindKeys,
  hidden_activation: z.string().default("gelu_pytorch_tanh"),
  attention_bias: z.boolean().default(false),
  /** Scores are divided by its square root. */
  query_pre_attn_scalar: z.number().min(1).max(1e6).default(256),
  attn_logit_softcapping: z.null().optional(),
  sliding_window: size.default(4096),
  is_causal: z.literal(true).nullish(), // use_bidirectional_attention decides
});

interface Gemma3Shape extends Omit<GemmaLayerShape, "norm"> {
  /** Factor on q·k. */
  readonly scale: number;
  readonly kinds: readonly LayerKind[];
  readonly masks: Readonly<Record<LayerKind, Mask>>;
  readonly ropes: Readonly<Record<LayerKind, Rope>>;
}

function readShape(config: unknown): Gemma3Shape {
  const sizes = readDecoderSizes(config, { headDim: 256 });
  const file = parseConfig(configSchema, config);
  const { headDim, maxPositions: positions } = sizes;
  return {
    ...sizes,
    activation: activation(file.hidden_activation, "config.json: hidden_activation"),
    attentionBias: file.attention_bias,
    scale: 1 / Math.sqrt(file.query_pre_attn_scalar),
    kinds: gemmaLayerKinds(file, sizes.layerCount),
    masks: masksOf(readBidirectional(config, "Gemma3Text", "Gemma3"), file.sliding_window),
    ropes: readLayerRopes(config, { headDims: byLayerKind(() => headDim), positions }),
  };
}

/** In both directions the window is as wide as `sliding_window`, half of it on each side of the token. */
function masksOf(bidirectional: boolean, window: number): Record<LayerKind, Mask> {
  return bidirectional
    ? {
        full_attention: { kind: "full" },
        sliding_attention: { kind: "window", radius: Math.floor(window / 2) },
      }
    : { full_attention: { kind: "causal" }, sliding_attention: { kind: "causal", window } };
}

class Gemma3 implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #shape: Gemma3Shape;
  readonly #embedding: LookupTable;
  readonly #layers: readonly GemmaLayer[];
  readonly #norm: Norm;

  constructor(shape: Gemma3Shape, weights: Weights) {
    const { width, vocabSize, eps } = shape;
    this.hiddenSize = width;
    this.vocabSize = vocabSize;
    this.maxPositions = shape.maxPositions;
    this.#shape = shape;
    const norm = (name: string, normWidth: number) => offsetRmsNorm(weights, name, normWidth, eps);
    this.#embedding = lookupTable(weights, "embed_tokens", vocabSize, width);
    this.#layers = shape.kinds.map(
      (_, layer) => new GemmaLayer({ ...shape, norm }, weights, `layers.${layer}`),
    );
    this.#norm = norm("norm", width);
  }

  forward(batch: RaggedBatch): Tensor {
    const { kinds, heads, kvHeads, scale, masks, ropes } = this.#shape;
    const surroundings = surroundingsOf(batch, (kind) => ({
      ...{ heads, kvHeads, scale },
      mask: masks[kind],
      rope: ropes[kind],
    }));
    const embedded = scaledEmbeddings(this.#embedding(batch.ids));
    const hidden = this.#layers.reduce(
      (x, layer, i) => layer.forward(x, surroundings[kinds[i]!]),
      embedded,
    );
    return mx.astype(this.#norm(hidden), "float32");
  }
}
