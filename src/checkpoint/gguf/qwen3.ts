import { requireOneOf, rowsOf, type Architecture } from "./architecture.ts";

export const qwen3: Architecture = {
  name: "qwen3",
  modelType: "qwen3",
  classes: { embedder: "Qwen3Model", generator: "Qwen3ForCausalLM" },
  keys: [
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
  ],
  layers: {
    token_embd: "embed_tokens",
    "blk.N.attn_norm": "layers.N.input_layernorm",
    "blk.N.attn_q": "layers.N.self_attn.q_proj",
    "blk.N.attn_k": "layers.N.self_attn.k_proj",
    "blk.N.attn_v": "layers.N.self_attn.v_proj",
    "blk.N.attn_q_norm": "layers.N.self_attn.q_norm",
    "blk.N.attn_k_norm": "layers.N.self_attn.k_norm",
    "blk.N.attn_output": "layers.N.self_attn.o_proj",
    "blk.N.ffn_norm": "layers.N.post_attention_layernorm",
    "blk.N.ffn_gate": "layers.N.mlp.gate_proj",
    "blk.N.ffn_up": "layers.N.mlp.up_proj",
    "blk.N.ffn_down": "layers.N.mlp.down_proj",
    output_norm: "norm",
    output: "lm_head",
  },
  config(header) {
    const { metadata, tensors } = header;
    const headDim = metadata.count("qwen3.attention.key_length");
    requireOneOf(metadata, "qwen3.attention.causal", [true]);
    requireOneOf(metadata, "qwen3.attention.value_length", [headDim]);
    requireOneOf(metadata, "qwen3.rope.dimension_count", [headDim]);
    requireOneOf(metadata, "qwen3.rope.scaling.type", ["none"]);
    return {
      vocab_size: rowsOf(header, "token_embd.weight"),
      hidden_size: metadata.count("qwen3.embedding_length"),
      num_hidden_layers: metadata.count("qwen3.block_count"),
      num_attention_heads: metadata.count("qwen3.attention.head_count"),
      num_key_value_heads: metadata.optionalCount("qwen3.attention.head_count_kv"),
      head_dim: headDim,
      intermediate_size: metadata.count("qwen3.feed_forward_length"),
      max_position_embeddings: metadata.count("qwen3.context_length"),
      rms_norm_eps: metadata.number("qwen3.attention.layer_norm_rms_epsilon"),
      rope_theta: metadata.number("qwen3.rope.freq_base"),
      tie_word_embeddings: !tensors.has("output.weight"),
    };
  },
};
