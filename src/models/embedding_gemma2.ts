import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "../nn/activations.ts";
import type { Encoder } from "../nn/encoder.ts";
import { linear, type Linear } from "../nn/linear.ts";
import { type Norm, perHead, plainRmsNorm, rmsNorm } from "../nn/norms.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import { readEmbeddingGemma2, type EmbeddingGemma2Shape } from "./embedding-gemma2-config.ts";
import type { ModelFamily } from "./family.ts";
import { GemmaLayer, scaledEmbeddings } from "./gemma-layer.ts";
import { type Surroundings, surroundingsOf } from "./layer-kind.ts";
import { lookupTable, type LookupTable } from "./lookup-table.ts";

/** EmbeddingGemma 2 (Google DeepMind), its texts. */
export const embeddingGemma2: ModelFamily = {
  modelType: "embedding_gemma2",
  publishedAs: "EmbeddingGemma 2, texts only",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "mean",
  weightPrefixes: ["model.language_model.", "language_model."],
  needsFloat32: true,
  load: (config, weights) => new EmbeddingGemma2(readEmbeddingGemma2(config), weights),
};

class EmbeddingGemma2 implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #shape: EmbeddingGemma2Shape;
  readonly #embedding: LookupTable;
  readonly #layerInputs: LayerInputs;
  readonly #layers: readonly Layer[];
  readonly #norm: Norm;
  readonly #projection: Linear;

  constructor(shape: EmbeddingGemma2Shape, weights: Weights) {
    const { width, vocabSize, eps, outputSize } = shape;
    this.hiddenSize = outputSize;
    this.vocabSize = vocabSize;
    this.maxPositions = shape.maxPositions;
    this.#shape = shape;
    this.#embedding = lookupTable(weights, "embed_tokens", vocabSize, width);
    this.#layerInputs = layerInputs(shape, weights);
    this.#layers = shape.kinds.map((_, layer) => new Layer(shape, weights, layer));
    this.#norm = rmsNorm(weights, "norm", width, eps);
    const projected = { inputs: width, outputs: outputSize, bias: false };
    this.#projection = linear(weights, "embedding_projection", projected);
  }

  forward(batch: RaggedBatch): Tensor {
    const { kinds, heads, headShapes, radius, ropes } = this.#shape;
    const surroundings = surroundingsOf(batch, (kind) => ({
      heads,
      kvHeads: headShapes[kind].kvHeads,
      // Queries and keys are normalised: their products need no scaling.
      scale: 1,
      mask: kind === "full_attention" ? { kind: "full" } : { kind: "window", radius },
      rope: ropes[kind],
    }));
    const embedded = scaledEmbeddings(this.#embedding(this.#words(batch.ids)));
    const inputOf = this.#layerInputs(embedded);
    const hidden = this.#layers.reduce(
      (x, layer, i) => layer.forward(x, inputOf(i), surroundings[kinds[i]!]),
      embedded,
    );
    return mx.astype(this.#projection(this.#norm(hidden)), "float32");
  }

  #words(ids: Int32Array): Int32Array {
    const { placeholders, padId } = this.#shape;
    return ids.map((id) => (placeholders.has(id) ? padId : id));
  }
}

/** The token embeddings [N, H] -> what they give to each layer [N, layerInputSize]. */
type LayerInputs = (embedded: Tensor) => (layer: number) => Tensor;

/** One projection for all layers, scaled by 1/√H; the part of each layer is normalised. */
function layerInputs(shape: EmbeddingGemma2Shape, weights: Weights): LayerInputs {
  const { width, layerCount, layerInputSize, eps } = shape;
  const project = linear(weights, "ple.per_layer_model_projection", {
    inputs: width,
    outputs: layerCount * layerInputSize,
    bias: false,
  });
  const normName = "ple.per_layer_projection_norm";
  const norm = perHead(rmsNorm(weights, normName, layerInputSize, eps), layerInputSize);
  return (embedded) => {
    const scale = mx.scalar(1 / Math.sqrt(width), embedded.dtype);
    // [N, layers * layerInputSize] -> `layers` times [N, layerInputSize]
    const parts = mx.split(norm(mx.multiply(project(embedded), scale)), layerCount, 1);
    return (layer) => parts[layer]!;
  };
}

/** A layer of Gemma 3, a third part that mixes in the layer's own input, and a factor on all of it. */
class Layer {
  readonly #layer: GemmaLayer;
  readonly #gate: Linear;
  readonly #activation: Activation;
  readonly #projection: Linear;
  readonly #norm: Norm;
  readonly #scalar: Tensor;

  constructor(shape: EmbeddingGemma2Shape, weights: Weights, index: number) {
    const { width, layerInputSize, eps, kinds, headShapes } = shape;
    const name = `layers.${index}`;
    const heads = headShapes[kinds[index]!];
    this.#layer = new GemmaLayer(
      {
        ...shape,
        ...heads,
        norm: (normName, normWidth) => rmsNorm(weights, normName, normWidth, eps),
        valueNorm: plainRmsNorm(weights, heads.headDim, eps),
      },
      weights,
      name,
    );
    const part = (partName: string) => `${name}.ple_block.${partName}`;
    this.#gate = linear(weights, part("per_layer_input_gate"), {
      inputs: width,
      outputs: layerInputSize,
      bias: false,
    });
    this.#activation = shape.activation;
    this.#projection = linear(weights, part("per_layer_projection"), {
      inputs: layerInputSize,
      outputs: width,
      bias: false,
    });
    this.#norm = rmsNorm(weights, part("post_per_layer_input_norm"), width, eps);
    this.#scalar = weights.take(`${name}.layer_scalar`, [1]);
  }

  /** x [N, H] and input [N, layerInputSize] -> [N, H] */
  forward(x: Tensor, input: Tensor, surroundings: Surroundings): Tensor {
    const hidden = this.#layer.forward(x, surroundings);
    const gated = mx.multiply(this.#activation(this.#gate(hidden)), input);
    const mixed = mx.add(hidden, this.#norm(this.#projection(gated)));
    return mx.multiply(mixed, this.#scalar);
  }
}
