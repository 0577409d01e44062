/** Numbers of config.json that no network has. */
import { describeRefusedSettings } from "../../test/fixtures/refused-settings.ts";

const TOO_BIG = 2 ** 32 + 2;

describeRefusedSettings("bert-mean", [
  [{ num_hidden_layers: TOO_BIG }, /config.json: num_hidden_layers: Too big/],
  [{ hidden_size: TOO_BIG }, /config.json: hidden_size: Too big/],
  [{ num_attention_heads: 0 }, /config.json: num_attention_heads: Too small/],
]);

describeRefusedSettings("qwen3-embed", [
  [{ head_dim: 1e9 }, /config.json: head_dim: Too big/],
  [{ rope_theta: 1e-300 }, /config.json: rope_theta: Too small/],
]);

describeRefusedSettings("gemma3-embed", [
  [{ query_pre_attn_scalar: 1e308 }, /config.json: query_pre_attn_scalar: Too big/],
]);

describeRefusedSettings("gte-new", [
  [{ rope_theta: 1e-300 }, /config.json: rope_theta: Too small/],
  [
    { rope_scaling: { type: "ntk", factor: 1e-300 } },
    /config.json: rope_scaling.factor: Too small/,
  ],
]);

describeRefusedSettings("nomic-bert", [
  [{ rotary_emb_base: 1e-300 }, /config.json: rotary_emb_base: Too small/],
]);
