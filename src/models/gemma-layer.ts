import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "../nn/activations.ts";
import { gatedLinear } from "../nn/gated-mlp.ts";
import { linear, type Linear } from "../nn/linear.ts";
import { type Norm, perHead } from "../nn/norms.ts";
import { size } from "./config.ts";
import type { DecoderSizes } from "./decoder-sizes.ts";
import { layerKind, type LayerKind, layerKinds, type Surroundings } from "./layer-kind.ts";

export interface GemmaLayerShape extends DecoderSizes {
  readonly activation: Activation;
  /** Of the four linear layers of attention. */
  readonly attentionBias: boolean;
  /** The RMSNorm of this name. */
  readonly norm: (name: string, width: number) => Norm;
  /** Of the values of each head; absent: they stay as they are. */
  readonly valueNorm?: Norm | undefined;
}

/** Keys of config.json that say which layers of a Gemma see a window only. */
export const layerKindKeys = {
  layer_types: z.array(layerKind).nullish(),
  /** Without layer_types: one layer in so many sees the whole text, the last of them. */
  sliding_window_pattern: size.default(6),
};

/** One per layer. Throws CheckpointError where `layer_types` has another number of them. */
export function gemmaLayerKinds(
  {
    layer_types: stated,
    sliding_window_pattern: pattern,
  }: z.output<z.ZodObject<typeof layerKindKeys>>,
  layerCount: number,
): readonly LayerKind[] {
  return layerKinds(stated, layerCount, (layer) => (layer + 1) % pattern === 0);
}

/** Gemma 3 (Gemma Team 2025): each half adds norm(f(norm(x))) to x; queries and keys are normalised head by head. */
export class GemmaLayer {
  readonly #query: Linear;
  readonly #key: Linear;
  readonly #value: Linear;
  readonly #attentionOutput: Linear;
  readonly #beforeAttention: Norm;
  readonly #afterAttention: Norm;
  readonly #beforeMlp: Norm;
  readonly #afterMlp: Norm;
  readonly #gated: Linear;
  readonly #down: Linear;

  constructor(shape: GemmaLayerShape, weights: Weights, name: string) {
    const { width, inner, heads, kvHeads, headDim, activation, attentionBias: bias } = shape;
    const attentionPart = (part: string) => `${name}.self_attn.${part}`;
    const project = (part: string, inputs: number, outputs: number) =>
      linear(weights, attentionPart(part), { inputs, outputs, bias });
    const normed = (layer: Linear, norm: Norm): Linear => {
      const headNorm = perHead(norm, headDim);
      return (x) => headNorm(layer(x));
    };
    const headNorm = (part: string) => shape.norm(attentionPart(part), headDim);
    const query = project("q_proj", width, heads * headDim);
    const key = project("k_proj", width, kvHeads * headDim);
    const value = project("v_proj", width, kvHeads * headDim);
    this.#query = normed(query, headNorm("q_norm"));
    this.#key = normed(key, headNorm("k_norm"));
    this.#value = shape.valueNorm ? normed(value, shape.valueNorm) : value;
    this.#attentionOutput = project("o_proj", heads * headDim, width);
    const norm = (part: string) => shape.norm(`${name}.${part}_layernorm`, width);
    this.#beforeAttention = norm("input");
    this.#afterAttention = norm("post_attention");
    this.#beforeMlp = norm("pre_feedforward");
    this.#afterMlp = norm("post_feedforward");
    const mlpPart = (part: string) => `${name}.mlp.${part}_proj`;
    const gateNames = { gate: mlpPart("gate"), up: mlpPart("up") };
    this.#gated = gatedLinear(weights, gateNames, { width, inner, bias: false, activation });
    this.#down = linear(weights, mlpPart("down"), { inputs: inner, outputs: width, bias: false });
  }

  /** [N, H] -> [N, H] */
  forward(x: Tensor, { rotate, attend }: Surroundings): Tensor {
    const normed = this.#beforeAttention(x);
    const queries = rotate.queries(this.#query(normed));
    const keys = rotate.keys(this.#key(normed));
    const context = this.#attentionOutput(attend(queries, keys, this.#value(normed)));
    const attended = mx.add(x, this.#afterAttention(context));
    const gated = this.#gated(this.#beforeMlp(attended));
    return mx.add(attended, this.#afterMlp(this.#down(gated)));
  }
}

/** x · √H, as Gemma scales its token embeddings [N, H]. */
export function scaledEmbeddings(x: Tensor): Tensor {
  return mx.multiply(x, mx.scalar(Math.sqrt(x.shape[1]!), x.dtype));
}
