import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import { attention, type RowAttention } from "../nn/attention.ts";
import type { Encoder } from "../nn/encoder.ts";
import { type Linear, normedResidualLinear, type ResidualLinear } from "../nn/linear.ts";
import { normedMlp } from "../nn/mlp.ts";
import { layerNorm } from "../nn/norms.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import { RowLayout } from "../nn/row-layout.ts";
import { selfAttention, type SelfAttention } from "../nn/self-attention.ts";
import { normedTables, type NormedTables } from "./lookup-table.ts";

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
    const attend = attention(new RowLayout(batch), {
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
  readonly #embed: NormedTables;
  readonly #types: number;
  readonly #rule: PositionRule;

  constructor(config: BertConfig, weights: Weights, rule: PositionRule) {
    this.#types = config.type_vocab_size;
    this.#rule = rule;
    const width = config.hidden_size;
    const table = (name: string, rows: number) => ({ name: `embeddings.${name}_embeddings`, rows });
    const tables = [
      table("word", config.vocab_size),
      table("token_type", config.type_vocab_size),
      table("position", config.max_position_embeddings),
    ];
    const norm = layerNorm(weights, "embeddings.LayerNorm", width, config.layer_norm_eps);
    this.#embed = normedTables(weights, tables, width, norm);
  }

  /** -> [N, H] */
  forward(batch: RaggedBatch): Tensor {
    return this.#embed(batch.ids, this.#typeIds(batch), this.#rule.positions(batch));
  }

  /** [N], or [1] where the first row of the table is added to all tokens. */
  #typeIds({ typeIds }: RaggedBatch): Int32Array {
    return typeIds && this.#types > 1 ? typeIds : Int32Array.of(0);
  }
}

/** Post-norm: each half ends in LayerNorm(x + f(x)). */
class Layer {
  readonly #attention: SelfAttention;
  readonly #attentionOutput: ResidualLinear;
  readonly #mlp: Linear;

  constructor(config: BertConfig, weights: Weights, name: string) {
    const { hidden_size: width, intermediate_size: inner, layer_norm_eps: eps } = config;
    const norm = (part: string) => layerNorm(weights, `${name}.${part}.LayerNorm`, width, eps);
    const square = { inputs: width, outputs: width, bias: true };
    this.#attention = selfAttention(weights, `${name}.attention.self`, square);
    this.#attentionOutput = normedResidualLinear(weights, `${name}.attention.output.dense`, {
      ...square,
      norm: norm("attention.output"),
    });
    const mlpNames = { input: `${name}.intermediate.dense`, output: `${name}.output.dense` };
    this.#mlp = normedMlp(weights, mlpNames, {
      ...{ width, inner, norm: norm("output") },
      activation: activation(config.hidden_act, "config.json: hidden_act"),
    });
  }

  /** [N, H] -> [N, H] */
  forward(x: Tensor, attend: RowAttention): Tensor {
    return this.#mlp(this.#attentionOutput(this.#attention(x, attend), x));
  }
}
