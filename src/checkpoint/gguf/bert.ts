import { CheckpointError } from "../error.ts";
import type { GgufHeader } from "./header.ts";
import { requireOneOf, rowsOf, type Architecture } from "./architecture.ts";

/** BERT, and RoBERTa and XLM-RoBERTa: their files hold the position table from the first row that is used. */
export const bert: Architecture = {
  name: "bert",
  modelType: "bert",
  classes: { embedder: "BertModel", reranker: "BertForSequenceClassification" },
  keys: ["attention.layer_norm_epsilon", "classifier.output_labels"],
  layers: {
    token_embd: "embeddings.word_embeddings",
    position_embd: "embeddings.position_embeddings",
    token_types: "embeddings.token_type_embeddings",
    token_embd_norm: "embeddings.LayerNorm",
    "blk.N.attn_q": "encoder.layer.N.attention.self.query",
    "blk.N.attn_k": "encoder.layer.N.attention.self.key",
    "blk.N.attn_v": "encoder.layer.N.attention.self.value",
    "blk.N.attn_output": "encoder.layer.N.attention.output.dense",
    "blk.N.attn_output_norm": "encoder.layer.N.attention.output.LayerNorm",
    "blk.N.ffn_up": "encoder.layer.N.intermediate.dense",
    "blk.N.ffn_down": "encoder.layer.N.output.dense",
    "blk.N.layer_output_norm": "encoder.layer.N.output.LayerNorm",
    cls: "pooler.dense",
    "cls.output": "classifier",
  },
  config(header) {
    const { metadata } = header;
    requireOneOf(metadata, "bert.attention.causal", [false]);
    requireWholeHead(header);
    return {
      vocab_size: rowsOf(header, "token_embd.weight"),
      hidden_size: metadata.count("bert.embedding_length"),
      num_hidden_layers: metadata.count("bert.block_count"),
      num_attention_heads: metadata.count("bert.attention.head_count"),
      intermediate_size: metadata.count("bert.feed_forward_length"),
      max_position_embeddings: rowsOf(header, "position_embd.weight"),
      type_vocab_size: rowsOf(header, "token_types.weight"),
      layer_norm_eps: metadata.number("bert.attention.layer_norm_epsilon"),
    };
  },
};

/** Converters drop the pooler of BERT, without which its classifier is another one. */
function requireWholeHead({ path, tensors }: GgufHeader): void {
  if (tensors.has("cls.weight") || !tensors.has("cls.output.weight")) return;
  throw new CheckpointError(
    `${path} has the classifier of BERT without its pooler (tensor "cls.weight"); use the model in the safetensors format`,
  );
}
