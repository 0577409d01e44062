import { describeRefusedSettings } from "../../test/fixtures/refused-settings.ts";

describeRefusedSettings("mpnet-mean", [
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ num_attention_heads: 5 }, /num_attention_heads: 5 does not divide hidden_size 36/],
  [{ relative_attention_num_buckets: 16 }, /relative_attention_num_buckets/],
  [{ relative_attention_num_buckets: 64 }, /relative_attention_bias\.weight.*\[32, 3\].*\[64, 3\]/],
  [{ max_position_embeddings: 64 }, /position_embeddings\.weight.*\[130, 36\].*\[64, 36\]/],
]);
