import { requireOneOf, rowsOf, type Architecture } from "./architecture.ts";

const NAME = "gemma-embedding";

/** Of so many layers the last attends to everything, the others to a window. */
const WINDOW_PATTERN = 6;
const WINDOW_THETA = 10_000;

/** The file holds norms as the factors that they are, the family as what is added to 1. */
const NORM_OFFSET = -1;

const NORMS = {
  "blk.N.attn_norm": "layers.N.input_layernorm",
  "blk.N.attn_q_norm": "layers.N.self_attn.q_norm",
  "blk.N.attn_k_norm": "layers.N.self_attn.k_norm",
  "blk.N.post_attention_norm": "layers.N.post_attention_layernorm",
  "blk.N.ffn_norm": "layers.N.pre_feedforward_layernorm",
  "blk.N.post_ffw_norm": "layers.N.post_feedforward_layernorm",
  output_norm: "norm",
};

/** EmbeddingGemma. */
export const gemmaEmbedding: Architecture = {
  name: NAME,
  modelType: "gemma3_text",
  classes: { embedder: "Gemma3TextModel" },
  keys: [
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.value_length",
    "dense_2_feat_in",
    "dense_2_feat_out",
    "dense_3_feat_in",
    "dense_3_feat_out",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scaling.type",
  ],
  layers: {
    ...NORMS,
    token_embd: "embed_tokens",
    "blk.N.attn_q": "layers.N.self_attn.q_proj",
    "blk.N.attn_k": "layers.N.self_attn.k_proj",
    "blk.N.attn_v": "layers.N.self_attn.v_proj",
    "blk.N.attn_output": "layers.N.self_attn.o_proj",
    "blk.N.ffn_gate": "layers.N.mlp.gate_proj",
    "blk.N.ffn_up": "layers.N.mlp.up_proj",
    "blk.N.ffn_down": "layers.N.mlp.down_proj",
    dense_2: "dense_2",
    dense_3: "dense_3",
  },
  offsets: Object.fromEntries(Object.keys(NORMS).map((layer) => [layer, NORM_OFFSET])),
  projections: ["dense_2", "dense_3"],
  config(header) {
    const { metadata } = header;
    const key = (name: string) => `${NAME}.${name}`;
    const headDim = metadata.count(key("attention.key_length"));
    requireOneOf(metadata, key("attention.causal"), [false]);
    requireOneOf(metadata, key("attention.value_length"), [headDim]);
    requireOneOf(metadata, key("rope.dimension_count"), [headDim]);
    requireOneOf(metadata, key("rope.scaling.type"), ["none"]);
    const layerCount = metadata.count(key("block_count"));
    const pattern =
      metadata.optionalCount(key("attention.sliding_window_pattern")) ?? WINDOW_PATTERN;
    return {
      use_bidirectional_attention: true,
      vocab_size: rowsOf(header, "token_embd.weight"),
      hidden_size: metadata.count(key("embedding_length")),
      num_hidden_layers: layerCount,
      num_attention_heads: metadata.count(key("attention.head_count")),
      num_key_value_heads: metadata.optionalCount(key("attention.head_count_kv")),
      head_dim: headDim,
      query_pre_attn_scalar: headDim,
      intermediate_size: metadata.count(key("feed_forward_length")),
      max_position_embeddings: metadata.count(key("context_length")),
      rms_norm_eps: metadata.number(key("attention.layer_norm_rms_epsilon")),
      sliding_window: metadata.count(key("attention.sliding_window")),
      layer_types: Array.from({ length: layerCount }, (_, layer) =>
        (layer + 1) % pattern === 0 ? "full_attention" : "sliding_attention",
      ),
      rope_theta: metadata.number(key("rope.freq_base")),
      rope_local_base_freq: metadata.optionalNumber(key("rope.freq_base_swa")) ?? WINDOW_THETA,
    };
  },
};
