/** Names of tensors that BERT and its descendants share, without `.weight` and `.bias`. */
import type { TableShape } from "./lookup-table.ts";

export function embeddingTable(name: "word" | "token_type" | "position", rows: number): TableShape {
  return { name: `embeddings.${name}_embeddings`, rows };
}

/** Of a layer of BERT. */
export function bertLayerNames(index: number) {
  const layer = `encoder.layer.${index}`;
  const projection = (part: string) => `${layer}.attention.self.${part}`;
  return {
    attention: {
      query: projection("query"),
      key: projection("key"),
      value: projection("value"),
    },
    attentionOutput: `${layer}.attention.output.dense`,
    attentionNorm: `${layer}.attention.output.LayerNorm`,
    mlp: { input: `${layer}.intermediate.dense`, output: `${layer}.output.dense` },
    mlpNorm: `${layer}.output.LayerNorm`,
  };
}

/** Of a layer of the encoders with rotary positions, as transformers names them. */
export function rotaryLayerNames(index: number) {
  const layer = `layers.${index}`;
  const attention = (part: string) => `${layer}.self_attn.${part}_proj`;
  const mlp = (part: string) => `${layer}.mlp.${part}_proj`;
  return {
    attention: { query: attention("q"), key: attention("k"), value: attention("v") },
    attentionOutput: attention("o"),
    attentionNorm: `${layer}.post_attention_layernorm`,
    mlp: { gate: mlp("gate"), up: mlp("up"), down: mlp("down") },
    mlpNorm: `${layer}.post_mlp_layernorm`,
  };
}
