import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { activation } from "../nn/activations.ts";
import { attention, type Attention } from "../nn/attention.ts";
import type { Decoder } from "../nn/decoder.ts";
import { gatedMlp } from "../nn/gated-mlp.ts";
import { appended, KvCache, type KeysValues } from "../nn/kv-cache.ts";
import { linear, type Linear, residualLinear, type ResidualLinear } from "../nn/linear.ts";
import { headRmsNorm, rmsNorm, type Norm } from "../nn/norms.ts";
import { raggedBatch, type RaggedBatch } from "../nn/ragged.ts";
import { inverseFrequencies, rotation, type Rotation } from "../nn/rope.ts";
import { RowLayout, rowStarts } from "../nn/row-layout.ts";
import { oneLabel } from "./classifier.ts";
import { parseConfig, size } from "./config.ts";
import type { ModelFamily } from "./family.ts";
import { lookupTable, requireRows, type LookupTable } from "./lookup-table.ts";

/** Rope without scaling of any kind, in the spelling of transformers 4 (`type`, `rope_type`) or 5. */
const plainRope = z.looseObject({
  type: z.literal("default").nullish(),
  rope_type: z.literal("default").nullish(),
  partial_rotary_factor: z.literal(1).nullish(),
  rope_theta: z.number().positive().nullish(),
});

const configSchema = z
  .object({
    vocab_size: size,
    hidden_size: size,
    intermediate_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    num_key_value_heads: size.nullish(),
    head_dim: size.multipleOf(2).default(128),
    max_position_embeddings: size.default(8192),
    hidden_act: z.string().default("silu"),
    rms_norm_eps: z.number().positive().default(1e-6),
    attention_bias: z.boolean().default(false),
    tie_word_embeddings: z.boolean().default(false),
    pad_token_id: z.int().nullish(),
    rope_theta: z.number().positive().nullish(),
    rope_scaling: plainRope.nullish(),
    rope_parameters: plainRope.nullish(),
    use_sliding_window: z.literal(false).nullish(),
    layer_types: z.array(z.literal("full_attention")).nullish(),
    is_causal: z.literal(true).nullish(),
    use_bidirectional_attention: z.literal(false).nullish(),
  })
  .transform((config, { addIssue }) => {
    const { num_attention_heads: heads, rope_parameters } = config;
    const kvHeads = config.num_key_value_heads ?? heads;
    if (heads % kvHeads !== 0) {
      const message = `${kvHeads} does not divide num_attention_heads ${heads}`;
      addIssue({ code: "custom", path: ["num_key_value_heads"], message });
    }
    const theta = rope_parameters?.rope_theta ?? config.rope_theta;
    if (theta == null) {
      addIssue({ code: "custom", path: ["rope_theta"], message: "is missing" });
      return z.NEVER;
    }
    return { ...config, heads, kvHeads, theta };
  });

type Qwen3Config = z.output<typeof configSchema>;

/** Qwen3 (Qwen Team 2025), dense. */
export const qwen3: ModelFamily = {
  modelType: "qwen3",
  defaultPooling: "lasttoken",
  weightPrefixes: ["model."],
  instructionPrompt: (task) => `Instruct: ${task}\nQuery:`,
  load: (config, weights) => new Qwen3(parse(config), weights),
  loadClassifier(config, weights) {
    const parsed = parse(config);
    const decoder = new Qwen3(parsed, weights);
    const { vocabSize, maxPositions, hiddenSize } = decoder;
    const score = oneLabel(weights, "score", { inputs: hiddenSize, bias: false });
    return {
      vocabSize,
      maxPositions,
      logits(batch) {
        const judged = judgedTokens(batch, parsed.pad_token_id);
        // [N, H] -> [B, H] -> [B, 1] -> [B]
        const states = mx.take(decoder.forward(batch), mx.fromInt32(judged, [judged.length]), 0);
        return mx.reshape(score(states), [judged.length]);
      },
    };
  },
};

/**
 * [B] place of the last token of each row that is not the padding token. A row may really end in that token, which
 * the reference implementation cannot tell from padding; a row of nothing else is judged by its first.
 */
function judgedTokens({ ids, lengths }: RaggedBatch, padId: number | null | undefined): Int32Array {
  return rowStarts(lengths).map((start, row) => {
    const last = start + lengths[row]! - 1;
    if (padId == null) return last;
    for (let token = last; token > start; token--) if (ids[token] !== padId) return token;
    return start;
  });
}

/** A decoder and as much of its output head as is needed to compare the logits of a few tokens. */
export interface PartialLanguageModel {
  readonly decoder: Decoder;
  /**
   * The rows of the head for these tokens, [tokens, hiddenSize] f32; the caller frees it. To be called once, after the
   * weights are closed: the rest of the head is let go.
   */
  readHead(tokens: readonly number[]): Tensor;
}

/** Throws CheckpointError as `ModelFamily.load`. */
export function loadPartialLanguageModel(config: unknown, weights: Weights): PartialLanguageModel {
  const parsed = parse(config);
  const { vocab_size: vocabSize, hidden_size: width, tie_word_embeddings: tied } = parsed;
  const head = weights.take(tied ? "embed_tokens.weight" : "lm_head.weight", [vocabSize, width]);
  return {
    decoder: new Qwen3(parsed, weights),
    readHead(tokens) {
      const ids = Int32Array.from(tokens);
      requireRows(ids, vocabSize, "lm_head");
      const rows = mx.scope(() => {
        const indices = mx.fromInt32(ids, [ids.length]);
        return mx.keep(mx.astype(mx.take(head, indices, 0), "float32"));
      });
      mx.evaluate(rows);
      if (!tied) head.free();
      return rows;
    },
  };
}

function parse(config: unknown): Qwen3Config {
  return parseConfig(configSchema, config, "config.json");
}

class Qwen3 implements Decoder {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly #config: Qwen3Config;
  readonly #frequencies: Float32Array;
  readonly #embedding: LookupTable;
  readonly #layers: readonly Layer[];
  readonly #norm: Norm;

  constructor(config: Qwen3Config, weights: Weights) {
    const { vocab_size: vocabSize, hidden_size: width } = config;
    this.hiddenSize = width;
    this.vocabSize = vocabSize;
    this.maxPositions = config.max_position_embeddings;
    this.#config = config;
    this.#frequencies = inverseFrequencies(config.head_dim, config.theta);
    this.#embedding = lookupTable(weights, "embed_tokens", vocabSize, width);
    this.#layers = Array.from(
      { length: config.num_hidden_layers },
      (_, layer) => new Layer(config, weights, `layers.${layer}`),
    );
    this.#norm = rmsNorm(weights, "norm", width, config.rms_norm_eps);
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
    const { heads, kvHeads, head_dim: headDim } = this.#config;
    const attend = attention(new RowLayout(batch), {
      heads,
      kvHeads,
      scale: 1 / Math.sqrt(headDim),
      mask: { kind: "causal" },
    });
    const first = past?.length ?? 0;
    const rotate = rotation(
      batch.positions.map((position) => first + position),
      this.#frequencies,
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

  constructor(config: Qwen3Config, weights: Weights, name: string) {
    const { hidden_size: width, heads, kvHeads, head_dim: headDim, rms_norm_eps: eps } = config;
    const project = (part: string, inputs: number, outputs: number) =>
      linear(weights, `${name}.self_attn.${part}`, {
        inputs,
        outputs,
        bias: config.attention_bias,
      });
    this.#attentionNorm = rmsNorm(weights, `${name}.input_layernorm`, width, eps);
    this.#query = project("q_proj", width, heads * headDim);
    this.#key = project("k_proj", width, kvHeads * headDim);
    this.#value = project("v_proj", width, kvHeads * headDim);
    this.#queryNorm = headRmsNorm(weights, `${name}.self_attn.q_norm`, headDim, eps);
    this.#keyNorm = headRmsNorm(weights, `${name}.self_attn.k_norm`, headDim, eps);
    this.#attentionOutput = residualLinear(weights, `${name}.self_attn.o_proj`, {
      ...{ inputs: heads * headDim, outputs: width },
      bias: config.attention_bias,
    });
    this.#mlpNorm = rmsNorm(weights, `${name}.post_attention_layernorm`, width, eps);
    const mlpPart = (part: string) => `${name}.mlp.${part}_proj`;
    const mlpNames = { gate: mlpPart("gate"), up: mlpPart("up"), down: mlpPart("down") };
    this.#mlp = gatedMlp(weights, mlpNames, {
      ...{ width, inner: config.intermediate_size, bias: false },
      activation: activation(config.hidden_act, "config.json: hidden_act"),
    });
  }

  /** [N, H] -> [N, H] */
  forward(x: Tensor, rotate: Rotation, attend: Attention): Tensor {
    const normed = this.#attentionNorm(x);
    const queries = rotate(this.#queryNorm(this.#query(normed)));
    const keys = rotate(this.#keyNorm(this.#key(normed)));
    const context = attend(queries, keys, this.#value(normed));
    const attended = this.#attentionOutput(context, x);
    return this.#mlp(this.#mlpNorm(attended), attended);
  }
}
