import { z } from "zod";
import type { Weights } from "../checkpoint/weights.ts";
import type { Rope } from "../nn/rope.ts";
import { scaledRope } from "../nn/rope-scaling.ts";
import { bertKeys, layerSizes } from "./bert-config.ts";
import { embeddingTable, rotaryLayerNames } from "./bert-names.ts";
import { denseClassifier } from "./classifier.ts";
import { headsDivide, parseConfig, rotaryFactor, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { PostNormEncoder } from "./post-norm-encoder.ts";
import { readRope } from "./rope-config.ts";

const configSchema = z
  .object({
    model_type: z.string(),
    ...bertKeys,
    max_position_embeddings: size.default(8192),
    type_vocab_size: z.int().nonnegative().default(1),
    is_decoder: z.literal(false).nullish(),
    // Of the original spelling.
    position_embedding_type: z.literal("rope").nullish(),
    layer_norm_type: z.literal("layer_norm").nullish(),
    pack_qkv: z.literal(true).nullish(),
    logn_attention_scale: z.literal(false).nullish(),
  })
  .check(headsDivide("num_attention_heads", "hidden_size", { even: true }));

type GteConfig = z.output<typeof configSchema>;

const asksForNtk = z.looseObject({ rope_scaling: z.looseObject({ type: z.literal("ntk") }) });

/** A scaling that the original spelling alone has. */
const ntkFile = z.looseObject({
  rope_theta: rotaryFactor,
  rope_scaling: z.strictObject({
    type: z.literal("ntk"),
    factor: rotaryFactor,
    mixed_b: z.null().optional(),
  }),
});

/** GTE (Zhang et al. 2024) in the spelling of transformers: BERT with rotary positions and a gated MLP. */
export const gte: ModelFamily = {
  modelType: "gte",
  publishedAs: "GTE v1.5 and multilingual GTE as transformers writes them",
  lengthLimit: "max_position_embeddings",
  defaultPooling: "cls",
  weightPrefixes: ["gte.", "new.", "model."],
  typeCount: (config) => parse(config).type_vocab_size,
  load: loadEncoder,
  loadClassifier: (config, weights) => denseClassifier(loadEncoder(config, weights), weights),
};

/** GTE in its original spelling. Tensors may be named either way whatever the config says. */
export const gteNew: ModelFamily = {
  ...gte,
  modelType: "new",
  publishedAs: "GTE v1.5, multilingual GTE, Arctic Embed M v2",
};

const parse = (config: unknown) => parseConfig(configSchema, config);

function loadEncoder(unparsed: unknown, weights: Weights): PostNormEncoder {
  const config = parse(unparsed);
  const { type_vocab_size: types } = config;
  return new PostNormEncoder(
    {
      ...layerSizes(config),
      maxPositions: config.max_position_embeddings,
      attentionBias: true,
      mlpBias: false,
      downBias: true,
      tables: {
        words: embeddingTable("word", config.vocab_size),
        types: types > 0 ? embeddingTable("token_type", types) : undefined,
        norm: "embeddings.LayerNorm",
      },
      layerNames: weights.has("encoder.layer.0.attention.qkv_proj.weight")
        ? originalNames
        : rotaryLayerNames,
      rope: ropeOf(unparsed, config),
    },
    weights,
  );
}

function ropeOf(unparsed: unknown, config: GteConfig): Rope {
  const headDim = config.hidden_size / config.num_attention_heads;
  if (asksForNtk.safeParse(unparsed).success) {
    const { rope_theta: theta, rope_scaling } = parseConfig(ntkFile, unparsed);
    return scaledRope(headDim, theta, { kind: "ntk", factor: rope_scaling.factor });
  }
  const positions = config.max_position_embeddings;
  const defaultTheta = config.model_type === gte.modelType ? 160_000 : undefined;
  return readRope(unparsed, { headDim, positions, defaultTheta });
}

function originalNames(index: number) {
  const layer = `encoder.layer.${index}`;
  return {
    attention: { queryKeyValue: `${layer}.attention.qkv_proj` },
    attentionOutput: `${layer}.attention.o_proj`,
    attentionNorm: `${layer}.attn_ln`,
    mlp: { upGate: `${layer}.mlp.up_gate_proj`, down: `${layer}.mlp.down_proj` },
    mlpNorm: `${layer}.mlp_ln`,
  };
}
