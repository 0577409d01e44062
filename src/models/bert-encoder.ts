import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation, type Activation } from "../nn/activations.ts";
import { attention, type Attention } from "../nn/attention.ts";
import type { Encoder } from "../nn/encoder.ts";
import { linear, type Linear } from "../nn/linear.ts";
import { layerNorm, type Norm } from "../nn/norms.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import { RowLayout } from "../nn/row-layout.ts";
import { lookupTable, type LookupTable } from "./lookup-table.ts";

const size = z.int().positive();

/** config.json of BERT and RoBERTa. */
export const bertConfig = z
  .object({
    vocab_size: size,
    hidden_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    intermediate_size: size,
    max_position_embeddings: size,
    type_vocab_size: size.default(2),
    hidden_act: z.string().default("gelu"),
    layer_norm_eps: z.number().positive().default(1e-12),
    position_embedding_type: z.literal("absolute").nullish(),
    is_decoder: z.literal(false).nullish(),
  })
  .check(({ value, issues }) => {
    const { hidden_size: width, num_attention_heads: heads } = value;
    if (width % heads === 0) return;
    const message = `${heads} does not divide hidden_size ${width}`;
    issues.push({ code: "custom", input: heads, path: ["num_attention_heads"], message });
  });

export type BertConfig = z.output<typeof bertConfig>;

/** Which rows of the position table the tokens of a row get. */
export interface PositionRule {
  /** Row for the first token of a text. */
  readonly first: number;
  /** [N] rows of the table. */
  positions(batch: RaggedBatch): Int32Array;
}

const consecutive: PositionRule = { first: 0, positions: (batch) => batch.positions };

/** BERT (Devlin et al. 2018), without its pooler. RoBERTa differs in its positions only. */
export class BertEncoder implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #heads: number;
  readonly #embeddings: Embeddings;
  readonly #layers: readonly Layer[];

  constructor(config: BertConfig, weights: Weights, rule = consecutive) {
    this.hiddenSize = config.hidden_size;
    this.vocabSize = config.vocab_size;
    this.maxPositions = config.max_position_embeddings - rule.first;
    this.#heads = config.num_attention_heads;
    this.#embeddings = new Embeddings(config, weights, rule);
    this.#layers = Array.from(
      { length: config.num_hidden_layers },
      (_, layer) => new Layer(config, weights, `encoder.layer.${layer}`),
    );
  }

  forward(batch: RaggedBatch): Tensor {
    const attend = attention(new RowLayout(batch.lengths), {
      heads: this.#heads,
      kvHeads: this.#heads,
      scale: 1 / Math.sqrt(this.hiddenSize / this.#heads),
      mask: { kind: "full" },
    });
    const embedded = this.#embeddings.forward(batch);
    const hidden = this.#layers.reduce((x, layer) => layer.forward(x, attend), embedded);
    return mx.astype(hidden, "float32");
  }
}

class Embeddings {
  readonly #word: LookupTable;
  readonly #position: LookupTable;
  readonly #type: LookupTable;
  readonly #types: number;
  readonly #norm: Norm;
  readonly #rule: PositionRule;

  constructor(config: BertConfig, weights: Weights, rule: PositionRule) {
    this.#types = config.type_vocab_size;
    this.#rule = rule;
    const width = config.hidden_size;
    const table = (name: string, rows: number) =>
      lookupTable(weights, `embeddings.${name}_embeddings`, rows, width);
    this.#word = table("word", config.vocab_size);
    this.#position = table("position", config.max_position_embeddings);
    this.#type = table("token_type", config.type_vocab_size);
    this.#norm = layerNorm(weights, "embeddings.LayerNorm", width, config.layer_norm_eps);
  }

  /** -> [N, H] */
  forward(batch: RaggedBatch): Tensor {
    const types = this.#type(this.#typeIds(batch));
    const words = mx.add(this.#word(batch.ids), types);
    return this.#norm(mx.add(words, this.#position(this.#rule.positions(batch))));
  }

  /** [N], or [1] where the first row of the table is added to all tokens. */
  #typeIds({ typeIds }: RaggedBatch): Int32Array {
    return typeIds && this.#types > 1 ? typeIds : Int32Array.of(0);
  }
}

/** Post-norm: each half ends in LayerNorm(x + f(x)). */
class Layer {
  readonly #query: Linear;
  readonly #key: Linear;
  readonly #value: Linear;
  readonly #attentionOutput: Linear;
  readonly #attentionNorm: Norm;
  readonly #intermediate: Linear;
  readonly #activation: Activation;
  readonly #output: Linear;
  readonly #outputNorm: Norm;

  constructor(config: BertConfig, weights: Weights, name: string) {
    const { hidden_size: width, intermediate_size: inner, layer_norm_eps: eps } = config;
    const dense = (part: string, inputs: number, outputs: number) =>
      linear(weights, `${name}.${part}`, { inputs, outputs, bias: true });
    this.#query = dense("attention.self.query", width, width);
    this.#key = dense("attention.self.key", width, width);
    this.#value = dense("attention.self.value", width, width);
    this.#attentionOutput = dense("attention.output.dense", width, width);
    this.#attentionNorm = layerNorm(weights, `${name}.attention.output.LayerNorm`, width, eps);
    this.#intermediate = dense("intermediate.dense", width, inner);
    this.#activation = activation(config.hidden_act, "config.json: hidden_act");
    this.#output = dense("output.dense", inner, width);
    this.#outputNorm = layerNorm(weights, `${name}.output.LayerNorm`, width, eps);
  }

  /** [N, H] -> [N, H] */
  forward(x: Tensor, attend: Attention): Tensor {
    const context = attend(this.#query(x), this.#key(x), this.#value(x));
    const attended = this.#attentionNorm(mx.add(x, this.#attentionOutput(context)));
    // [N, H] -> [N, inner] -> [N, H]
    const inner = this.#activation(this.#intermediate(attended));
    return this.#outputNorm(mx.add(attended, this.#output(inner)));
  }
}
