import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import {
  disentangledAttention,
  type DisentangledAttention,
  disentangledRows,
  type DistanceBuckets,
  type RelativeEmbeddings,
} from "../nn/disentangled-attention.ts";
import type { Encoder } from "../nn/encoder.ts";
import { layerNorm } from "../nn/norms.ts";
import { postNormLayer } from "../nn/post-norm-layer.ts";
import type { RaggedBatch } from "../nn/ragged.ts";
import { RowLayout } from "../nn/row-layout.ts";
import { bertKeys, layerSizes } from "./bert-config.ts";
import { bertLayerNames, embeddingTable } from "./bert-names.ts";
import { denseClassifier } from "./classifier.ts";
import { headsDivide, parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { normedTables, type NormedTables } from "./lookup-table.ts";
import { UNSTATED_MAX_POSITIONS } from "./max-length.ts";

/** Names separated by bars, in the older files, or a list of them. */
const names = z.union([
  z.array(z.string()),
  z.string().transform((text) => text.split("|").map((name) => name.trim())),
]);

/** Anything else than DeBERTa-v3 has is another network. The reference has other defaults. */
const configSchema = z
  .object({
    ...bertKeys,
    max_position_embeddings: size.default(512),
    layer_norm_eps: z.number().positive().default(1e-7),
    relative_attention: z.literal(true),
    position_buckets: size.min(4),
    max_relative_positions: z.int().default(-1),
    pos_att_type: names.refine(
      (kinds) => kinds.toSorted().join() === "c2p,p2c",
      'expected "p2c" and "c2p"',
    ),
    share_att_key: z.literal(true),
    norm_rel_ebd: names.refine((norms) => norms.join() === "layer_norm", 'expected "layer_norm"'),
    position_biased_input: z.literal(false),
    type_vocab_size: z.literal(0).default(0),
    conv_kernel_size: z.literal(0).nullish(),
    embedding_size: size.nullish(),
    attention_head_size: size.nullish(),
    pooler_hidden_act: z.string().default("gelu"),
  })
  .check(headsDivide("num_attention_heads", "hidden_size"))
  .check(({ value, issues }) => {
    const { hidden_size: width, num_attention_heads: heads } = value;
    const equals = { embedding_size: width, attention_head_size: width / heads } as const;
    for (const key of ["embedding_size", "attention_head_size"] as const) {
      if (value[key] == null || value[key] === equals[key]) continue;
      const message = `${value[key]} is not supported; it must be ${equals[key]}`;
      issues.push({ code: "custom", input: value[key], path: [key], message });
    }
  });

type DebertaConfig = z.output<typeof configSchema>;

/** DeBERTa-v3 (He et al. 2021), and what of v2 has the same layers. */
export const debertaV2: ModelFamily = {
  modelType: "deberta-v2",
  publishedAs: "DeBERTa-v3, mxbai-rerank v1",
  lengthLimit: String(UNSTATED_MAX_POSITIONS),
  defaultPooling: "mean",
  weightPrefixes: ["deberta.", "model."],
  load: (config, weights) => new DebertaEncoder(parse(config), weights),
  loadClassifier(unparsed, weights) {
    const config = parse(unparsed);
    return denseClassifier(new DebertaEncoder(config, weights), weights, {
      activation: activation(config.pooler_hidden_act, "config.json: pooler_hidden_act"),
    });
  },
};

const parse = (config: unknown) => parseConfig(configSchema, config);

class DebertaEncoder implements Encoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions = UNSTATED_MAX_POSITIONS;
  readonly usualPositions: number;
  readonly #distances: DistanceBuckets;
  readonly #embed: NormedTables;
  readonly #layers: readonly DisentangledAttention[];

  constructor(config: DebertaConfig, weights: Weights) {
    const { hidden_size: width, vocab_size: rows, layer_norm_eps: eps } = config;
    this.hiddenSize = width;
    this.vocabSize = rows;
    this.usualPositions = config.max_position_embeddings;
    const stated = config.max_relative_positions;
    const maxDistance = stated > 0 ? stated : config.max_position_embeddings;
    this.#distances = { span: config.position_buckets, maxDistance };
    const norm = layerNorm(weights, "embeddings.LayerNorm", width, eps);
    this.#embed = normedTables(weights, [embeddingTable("word", rows)], width, norm);
    const relative = loadRelativeEmbeddings(config, weights);
    this.#layers = Array.from({ length: config.num_hidden_layers }, (_, layer) =>
      loadLayer(config, weights, layer, relative),
    );
  }

  forward(batch: RaggedBatch): Tensor {
    const rows = disentangledRows(new RowLayout(batch), this.#distances);
    const hidden = this.#layers.reduce((x, layer) => layer(x, rows), this.#embed(batch.ids));
    return mx.astype(hidden, "float32");
  }
}

function loadRelativeEmbeddings(config: DebertaConfig, weights: Weights): RelativeEmbeddings {
  const { hidden_size: width, position_buckets: span, layer_norm_eps: eps } = config;
  const table = weights.take("encoder.rel_embeddings.weight", [2 * span, width]);
  const norm = layerNorm(weights, "encoder.LayerNorm", width, eps);
  return () => norm(table);
}

function loadLayer(
  config: DebertaConfig,
  weights: Weights,
  index: number,
  relative: RelativeEmbeddings,
): DisentangledAttention {
  const sizes = layerSizes(config);
  const names = bertLayerNames(index);
  const { query, key, value } = names.attention;
  const projections = { query: `${query}_proj`, key: `${key}_proj`, value: `${value}_proj` };
  const attend = disentangledAttention(weights, projections, sizes, relative);
  return postNormLayer(weights, attend, names, {
    ...sizes,
    attentionBias: true,
    mlpBias: true,
  });
}
