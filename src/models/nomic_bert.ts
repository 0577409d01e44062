import { z } from "zod";
import { activation } from "../nn/activations.ts";
import { inverseFrequencies } from "../nn/rope.ts";
import { bertKeys, layerSizes } from "./bert-config.ts";
import { embeddingTable, rotaryLayerNames } from "./bert-names.ts";
import { headsDivide, parseConfig, rotaryFactor, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { PostNormEncoder, type PostNormModel } from "./post-norm-encoder.ts";
import { readRope } from "./rope-config.ts";

/** Anything else is another network. The reference has other defaults, so that most of these keys must be there. */
const originalConfig = z
  .object({
    vocab_size: size,
    pad_vocab_size_multiple: size.default(1),
    n_embd: size,
    n_inner: size,
    n_layer: size,
    n_head: size,
    n_positions: size,
    type_vocab_size: size.default(2),
    layer_norm_epsilon: z.number().positive(),
    activation_function: z.literal("swiglu"),
    rotary_emb_base: rotaryFactor,
    rotary_emb_fraction: z.literal(1),
    rotary_emb_interleaved: z.literal(false).nullish(),
    rotary_emb_scale_base: z.null().optional(),
    rotary_scaling_factor: z.null().optional(),
    qkv_proj_bias: z.literal(false),
    mlp_fc1_bias: z.literal(false),
    mlp_fc2_bias: z.literal(false),
    prenorm: z.literal(false).nullish(),
    parallel_block: z.literal(false).nullish(),
    use_rms_norm: z.literal(false).nullish(),
    scale_attn_weights: z.literal(true).nullish(),
    causal: z.literal(false).nullish(),
    num_experts: z.literal(0).nullish(),
    moe_every_n_layers: z.literal(0).nullish(),
  })
  .check(headsDivide("n_head", "n_embd", { even: true }));

/** The spelling of transformers. */
const libraryConfig = z
  .object({
    ...bertKeys,
    head_dim: size.nullish(),
    max_position_embeddings: size.default(2048),
    type_vocab_size: size.default(2),
    hidden_act: z.string().default("silu"),
    is_decoder: z.literal(false).nullish(),
  })
  .check(headsDivide("num_attention_heads", "hidden_size", { even: true }))
  .check(({ value, issues }) => {
    const { head_dim: headDim, hidden_size: width, num_attention_heads: heads } = value;
    if (!headDim || headDim * heads === width) return;
    const message = `${headDim} is not hidden_size ${width} divided by ${heads} heads`;
    issues.push({ code: "custom", input: headDim, path: ["head_dim"], message });
  });

/** Files that are written in both spellings are read in the original one, which states the longer texts. */
const isOriginal = z.looseObject({ n_embd: z.unknown() });

type Sizes = Pick<
  PostNormModel,
  "width" | "inner" | "heads" | "layers" | "maxPositions" | "activation" | "eps" | "rope"
> & { readonly vocabSize: number; readonly types: number };

/** Nomic Embed (Nussbaum et al. 2024): BERT with rotary positions, a gated MLP, and biases in its norms alone. */
export const nomicBert: ModelFamily = {
  modelType: "nomic_bert",
  publishedAs: "Nomic Embed v1 and v1.5",
  lengthLimit: "n_positions",
  defaultPooling: "mean",
  weightPrefixes: ["bert.", "nomic_bert.", "model."],
  typeCount: (config) => readSizes(config).types,
  load(config, weights) {
    const { vocabSize, types, ...sizes } = readSizes(config);
    const original = weights.has("emb_ln.weight");
    return new PostNormEncoder(
      {
        ...sizes,
        attentionBias: false,
        mlpBias: false,
        tables: {
          words: embeddingTable("word", vocabSize),
          types: embeddingTable("token_type", types),
          norm: original ? "emb_ln" : "embeddings.LayerNorm",
        },
        layerNames: original ? originalNames : rotaryLayerNames,
      },
      weights,
    );
  },
};

function readSizes(config: unknown): Sizes {
  return isOriginal.safeParse(config).success ? originalSizes(config) : librarySizes(config);
}

function originalSizes(unparsed: unknown): Sizes {
  const config = parseConfig(originalConfig, unparsed);
  const { n_embd: width, n_head: heads, pad_vocab_size_multiple: multiple } = config;
  return {
    width,
    heads,
    inner: config.n_inner,
    layers: config.n_layer,
    maxPositions: config.n_positions,
    activation: activation("silu", "config.json: activation_function"),
    eps: config.layer_norm_epsilon,
    vocabSize: Math.ceil(config.vocab_size / multiple) * multiple,
    types: config.type_vocab_size,
    rope: { frequencies: inverseFrequencies(width / heads, config.rotary_emb_base) },
  };
}

function librarySizes(unparsed: unknown): Sizes {
  const config = parseConfig(libraryConfig, unparsed);
  const { hidden_size: width, num_attention_heads: heads } = config;
  const maxPositions = config.max_position_embeddings;
  const context = { headDim: width / heads, positions: maxPositions, defaultTheta: 1000 };
  return {
    ...layerSizes(config),
    maxPositions,
    vocabSize: config.vocab_size,
    types: config.type_vocab_size,
    rope: readRope(unparsed, context),
  };
}

function originalNames(index: number) {
  const layer = `encoder.layers.${index}`;
  return {
    attention: { queryKeyValue: `${layer}.attn.Wqkv` },
    attentionOutput: `${layer}.attn.out_proj`,
    attentionNorm: `${layer}.norm1`,
    mlp: { up: `${layer}.mlp.fc11`, gate: `${layer}.mlp.fc12`, down: `${layer}.mlp.fc2` },
    mlpNorm: `${layer}.norm2`,
  };
}
