import { requireOneOf, rowsOf, type Architecture } from "./architecture.ts";

/** Nomic Embed 1 and 1.5. */
export const nomicBert: Architecture = {
  name: "nomic-bert",
  modelType: "nomic_bert",
  classes: { embedder: "NomicBertModel" },
  keys: ["attention.layer_norm_epsilon", "rope.freq_base", "rope.scaling.type"],
  layers: {
    token_embd: "embeddings.word_embeddings",
    token_types: "embeddings.token_type_embeddings",
    token_embd_norm: "emb_ln",
    "blk.N.attn_qkv": "encoder.layers.N.attn.Wqkv",
    "blk.N.attn_output": "encoder.layers.N.attn.out_proj",
    "blk.N.attn_output_norm": "encoder.layers.N.norm1",
    "blk.N.ffn_up": "encoder.layers.N.mlp.fc11",
    "blk.N.ffn_gate": "encoder.layers.N.mlp.fc12",
    "blk.N.ffn_down": "encoder.layers.N.mlp.fc2",
    "blk.N.layer_output_norm": "encoder.layers.N.norm2",
  },
  config(header) {
    const { metadata } = header;
    requireOneOf(metadata, "nomic-bert.attention.causal", [false]);
    requireOneOf(metadata, "nomic-bert.rope.scaling.type", ["none"]);
    return {
      vocab_size: rowsOf(header, "token_embd.weight"),
      n_embd: metadata.count("nomic-bert.embedding_length"),
      n_inner: metadata.count("nomic-bert.feed_forward_length"),
      n_layer: metadata.count("nomic-bert.block_count"),
      n_head: metadata.count("nomic-bert.attention.head_count"),
      n_positions: metadata.count("nomic-bert.context_length"),
      type_vocab_size: rowsOf(header, "token_types.weight"),
      layer_norm_epsilon: metadata.number("nomic-bert.attention.layer_norm_epsilon"),
      rotary_emb_base: metadata.number("nomic-bert.rope.freq_base"),
      rotary_emb_fraction: 1,
      activation_function: "swiglu",
      qkv_proj_bias: false,
      mlp_fc1_bias: false,
      mlp_fc2_bias: false,
    };
  },
};
