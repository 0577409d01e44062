import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { attention, type Attention } from "../nn/attention.ts";
import type { Decoder } from "../nn/decoder.ts";
import { gatedMlp } from "../nn/gated-mlp.ts";
import { appended, KvCache, type KeysValues } from "../nn/kv-cache.ts";
import { linear, type Linear, residualLinear, type ResidualLinear } from "../nn/linear.ts";
import { type Norm, perHead, rmsNorm } from "../nn/norms.ts";
import { type Mask, raggedBatch, type RaggedBatch } from "../nn/ragged.ts";
import { rotations, type Rotations } from "../nn/rope.ts";
import { RowLayout } from "../nn/row-layout.ts";
import type { LlamaSizes } from "./llama-config.ts";
import { lookupTable, type LookupTable } from "./lookup-table.ts";

/** In what the families of Llama's shape differ. */
export interface LlamaShape extends LlamaSizes {
  readonly mask: Mask;
  /** Which linear layers have a bias. */
  readonly biases: {
    readonly queryKeyValue: boolean;
    readonly attentionOutput: boolean;
    readonly mlp: boolean;
  };
  /** Queries and keys are normalised, head by head, before they are turned. */
  readonly headNorms: boolean;
}

/**
 * The network of Llama (Touvron et al. 2023), which most decoders share: pre-norm layers of rotary attention with
 * fewer key/value heads and a gated MLP. With the mask "full" it is an encoder, and continues no past.
 */
export class LlamaDecoder implements Decoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #shape: LlamaShape;
  readonly #embedding: LookupTable;
  readonly #layers: readonly Layer[];
  readonly #norm: Norm;

  constructor(shape: LlamaShape, weights: Weights) {
    const { width, vocabSize } = shape;
    this.hiddenSize = width;
    this.vocabSize = vocabSize;
    this.maxPositions = shape.maxPositions;
    this.#shape = shape;
    this.#embedding = lookupTable(weights, "embed_tokens", vocabSize, width);
    this.#layers = Array.from(
      { length: shape.layerCount },
      (_, layer) => new Layer(shape, weights, `layers.${layer}`),
    );
    this.#norm = rmsNorm(weights, "norm", width, shape.eps);
  }

  forward(batch: RaggedBatch, past?: KvCache): Tensor {
    return mx.astype(this.#norm(this.#run(batch, past).states), "float32");
  }

  prefill(ids: Int32Array, past?: KvCache): KvCache {
    return mx.scope(() => {
      const { own } = this.#run(raggedBatch([{ ids }]), past);
      const all = past ? past.layers.map((before, i) => appended(before, own[i]!)) : own;
      return new KvCache(all);
    });
  }

  /** The states that leave the last layer, and each layer's keys and values of the batch. */
  #run(batch: RaggedBatch, past: KvCache | undefined) {
    const { heads, kvHeads, headDim, mask, rope } = this.#shape;
    const scale = 1 / Math.sqrt(headDim);
    const attend = attention(new RowLayout(batch), { heads, kvHeads, scale, mask });
    const first = past?.length ?? 0;
    const rotate = rotations(
      batch.positions.map((position) => first + position),
      rope,
    );
    const own: KeysValues[] = [];
    let states = this.#embedding(batch.ids);
    this.#layers.forEach((layer, i) => {
      const attendAndKeep: Attention = (q, keys, values) => {
        own.push({ keys, values });
        return attend(q, keys, values, past?.layers[i]);
      };
      states = layer.forward(states, rotate, attendAndKeep);
    });
    return { states, own };
  }
}

/** Pre-norm: each half adds f(norm(x)) to x. */
class Layer {
  readonly #attentionNorm: Norm;
  readonly #query: Linear;
  readonly #key: Linear;
  readonly #value: Linear;
  readonly #queryNorm: Norm;
  readonly #keyNorm: Norm;
  readonly #attentionOutput: ResidualLinear;
  readonly #mlpNorm: Norm;
  readonly #mlp: ResidualLinear;

  constructor(shape: LlamaShape, weights: Weights, name: string) {
    const { width, inner, heads, kvHeads, headDim, eps, biases, activation } = shape;
    const attentionPart = (part: string) => `${name}.self_attn.${part}`;
    const project = (part: string, outputs: number) =>
      linear(weights, attentionPart(part), { inputs: width, outputs, bias: biases.queryKeyValue });
    const headNorm = (part: string): Norm =>
      shape.headNorms
        ? perHead(rmsNorm(weights, attentionPart(part), headDim, eps), headDim)
        : (x) => x;
    this.#attentionNorm = rmsNorm(weights, `${name}.input_layernorm`, width, eps);
    this.#query = project("q_proj", heads * headDim);
    this.#key = project("k_proj", kvHeads * headDim);
    this.#value = project("v_proj", kvHeads * headDim);
    this.#queryNorm = headNorm("q_norm");
    this.#keyNorm = headNorm("k_norm");
    this.#attentionOutput = residualLinear(weights, attentionPart("o_proj"), {
      ...{ inputs: heads * headDim, outputs: width },
      bias: biases.attentionOutput,
    });
    this.#mlpNorm = rmsNorm(weights, `${name}.post_attention_layernorm`, width, eps);
    const mlpPart = (part: string) => `${name}.mlp.${part}_proj`;
    const mlpNames = { gate: mlpPart("gate"), up: mlpPart("up"), down: mlpPart("down") };
    this.#mlp = gatedMlp(weights, mlpNames, { width, inner, bias: biases.mlp, activation });
  }

  /** [N, H] -> [N, H] */
  forward(x: Tensor, rotate: Rotations, attend: Attention): Tensor {
    const normed = this.#attentionNorm(x);
    const queries = rotate.queries(this.#queryNorm(this.#query(normed)));
    const keys = rotate.keys(this.#keyNorm(this.#key(normed)));
    const context = attend(queries, keys, this.#value(normed));
    const attended = this.#attentionOutput(context, x);
    return this.#mlp(this.#mlpNorm(attended), attended);
  }
}
