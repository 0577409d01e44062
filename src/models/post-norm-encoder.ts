import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { attention } from "../nn/attention.ts";
import type { Encoder } from "../nn/encoder.ts";
import { layerNorm } from "../nn/norms.ts";
import { postNormLayer, type PostNormNames, type PostNormShape } from "../nn/post-norm-layer.ts";
import { longestRow, type RaggedBatch } from "../nn/ragged.ts";
import type { RelativeBias } from "../nn/relative-bias.ts";
import { type Rope, rotations } from "../nn/rope.ts";
import { RowLayout } from "../nn/row-layout.ts";
import { selfAttention, type ProjectionNames, type SelfAttention } from "../nn/self-attention.ts";
import { normedTables, type NormedTables, type TableShape } from "./lookup-table.ts";

/** Which rows of the position table the tokens of a batch get: [N]. */
export type PositionRule = (batch: RaggedBatch) => Int32Array;

/** What a token's first hidden state is the normalised sum of. Names are without `.weight` and `.bias`. */
interface EmbeddingTables {
  readonly words: TableShape;
  /** Token types; with one row it is added to all tokens. */
  readonly types?: TableShape | undefined;
  readonly positions?: (TableShape & { readonly rule: PositionRule }) | undefined;
  readonly norm: string;
}

/** A network of post-norm layers: its sizes, and how a family names its tensors. */
export interface PostNormModel extends PostNormShape {
  readonly heads: number;
  readonly layers: number;
  /** Longest row that the network can take. */
  readonly maxPositions: number;
  readonly tables: EmbeddingTables;
  readonly layerNames: (layer: number) => PostNormNames & { readonly attention: ProjectionNames };
  /** Of all layers; absent: none. */
  readonly rope?: Rope | undefined;
  /** Of all layers; absent: none. */
  readonly relativeBias?: RelativeBias | undefined;
}

/** The encoders that descend from BERT. */
export class PostNormEncoder implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #model: PostNormModel;
  readonly #embed: NormedTables;
  readonly #layers: readonly SelfAttention[];

  constructor(model: PostNormModel, weights: Weights) {
    const { width, tables, attentionBias: bias } = model;
    this.hiddenSize = width;
    this.vocabSize = tables.words.rows;
    this.maxPositions = model.maxPositions;
    this.#model = model;
    const listed = [tables.words, tables.types, tables.positions].filter((table) => !!table);
    this.#embed = normedTables(
      ...([weights, listed, width] as const),
      layerNorm(weights, tables.norm, width, model.eps),
    );
    this.#layers = Array.from({ length: model.layers }, (_, layer) => {
      const names = model.layerNames(layer);
      const square = { inputs: width, outputs: width, bias };
      const attend = selfAttention(weights, names.attention, square);
      return postNormLayer(weights, attend, names, model);
    });
  }

  forward(batch: RaggedBatch): Tensor {
    const { heads, rope, relativeBias } = this.#model;
    const attend = attention(new RowLayout(batch), {
      heads,
      kvHeads: heads,
      scale: 1 / Math.sqrt(this.hiddenSize / heads),
      mask: { kind: "full" },
      relativeBias: relativeBias?.(longestRow(batch)),
    });
    const rotate = rope && rotations(batch.positions, rope);
    const embedded = this.#embed(...this.#indices(batch));
    const hidden = this.#layers.reduce((x, layer) => layer(x, attend, rotate), embedded);
    return mx.astype(hidden, "float32");
  }

  /** One for each table: [N], or [1] for all tokens. */
  #indices(batch: RaggedBatch): Int32Array[] {
    const { types, positions } = this.#model.tables;
    const indices = [batch.ids];
    if (types) indices.push((types.rows > 1 && batch.typeIds) || Int32Array.of(0));
    if (positions) indices.push(positions.rule(batch));
    return indices;
  }
}
