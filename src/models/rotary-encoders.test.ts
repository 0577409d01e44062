/** Settings of the encoders with rotary positions that stop the load, and spellings of published files. */
import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointCopy, renamed, tensorNamed } from "../../test/checkpoints.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { describeRefusedSettings, withSettings } from "../../test/fixtures/refused-settings.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";
import { loadReranker } from "./load-reranker.ts";

const device = mx.openDevice("cpu");

describeRefusedSettings("nomic-bert", [
  [{ rotary_scaling_factor: 2 }, /rotary_scaling_factor/],
  [{ rotary_emb_fraction: 0.5 }, /rotary_emb_fraction/],
  [{ rotary_emb_interleaved: true }, /rotary_emb_interleaved/],
  [{ rotary_emb_scale_base: 512 }, /rotary_emb_scale_base/],
  [{ activation_function: "gelu" }, /activation_function.*"swiglu"/],
  [{ qkv_proj_bias: undefined }, /qkv_proj_bias/],
  [{ mlp_fc1_bias: true }, /mlp_fc1_bias/],
  [{ mlp_fc2_bias: true }, /mlp_fc2_bias/],
  [{ prenorm: true }, /prenorm/],
  [{ parallel_block: true }, /parallel_block/],
  [{ use_rms_norm: true }, /use_rms_norm/],
  [{ causal: true }, /causal/],
  [{ num_experts: 8, moe_every_n_layers: 2 }, /num_experts.*moe_every_n_layers/],
  [{ n_head: 5 }, /n_head: 5 does not divide n_embd 48 into even parts/],
  [{ n_layer: 3 }, /encoder\.layers\.2\./],
]);

describeRefusedSettings("nomic-bert-hf", [
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ rope_parameters: { rope_type: "dynamic", factor: 2 } }, /"dynamic" is not supported/],
  [{ head_dim: 12 }, /head_dim: 12 is not hidden_size 48 divided by 3 heads/],
  [{ num_attention_heads: 7 }, /num_attention_heads: 7 does not divide hidden_size 48/],
]);

describeRefusedSettings("gte-new", [
  [{ rope_scaling: { type: "ntk", factor: 2, mixed_b: 0.7 } }, /rope_scaling\.mixed_b/],
  [{ rope_scaling: { type: "ntk", factor: "two" } }, /rope_scaling\.factor/],
  [{ rope_scaling: { type: "dynamic", factor: 2 } }, /"dynamic" is not supported/],
  [{ rope_scaling: null, rope_theta: undefined }, /rope_theta: is missing/],
  [{ position_embedding_type: "absolute" }, /position_embedding_type/],
  [{ layer_norm_type: "rms_norm" }, /layer_norm_type/],
  [{ logn_attention_scale: true }, /logn_attention_scale/],
  [{ pack_qkv: false }, /pack_qkv/],
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ type_vocab_size: 2 }, /token_type_embeddings\.weight.*missing/],
]);

describeRefusedSettings("jina-v3-base", [
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ rope_parameters: { rope_type: "longrope", rope_theta: 2e4 } }, /"longrope" is not supported/],
  [{ num_attention_heads: 5 }, /num_attention_heads: 5 does not divide hidden_size 48/],
  [
    { model_type: "xlm-roberta", lora_adaptations: ["retrieval.query", "text-matching"] },
    /lora_adaptations: adapters for tasks inside of the network are not supported/,
  ],
]);

describeRefusedSettings("eurobert-mean", [
  [{ hidden_act: "quick_gelu" }, /hidden_act: unknown activation "quick_gelu"/],
  [{ rope_scaling: { type: "dynamic", factor: 2 } }, /"dynamic" is not supported/],
  [{ clip_qkv: 8 }, /clip_qkv/],
  [{ attention_bias: true }, /q_proj\.bias.*missing/],
  [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types\.1/],
]);

function vector(directory: string): Float32Array {
  const model = loadEmbeddingModel({ directory, device });
  return model.start([model.tokenize({ text: "coldest March on record" }, {})]).read();
}

function expectSameAs(fixtureName: string, directory: string): void {
  expect(vector(directory)).toEqual(vector(fixture(fixtureName)));
}

test("Jina Embeddings v3 in its original layout is refused", () => {
  const { directory } = new CheckpointCopy("jina-v3-base").tensors((table) =>
    renamed(table, (name) => name.replace("embeddings.LayerNorm", "emb_ln")),
  );
  expect(() => loadEmbeddingModel({ directory, device })).toThrow(/original layout.*not supported/);
});

test("Nomic's config.json in both spellings is read in the original one, with its longer texts", () => {
  const both = withSettings("nomic-bert", {
    ...{ hidden_size: 48, num_attention_heads: 3, max_position_embeddings: 64 },
    rope_parameters: { rope_type: "default", rope_theta: 1000 },
  });
  expectSameAs("nomic-bert", both);
  expect(loadEmbeddingModel({ directory: both, device }).facts.maxLength).toBe(96);
});

test("Nomic's vocabulary is padded to the multiple that config.json states", () => {
  expectSameAs("nomic-bert", withSettings("nomic-bert", { vocab_size: 1000 }));
});

test("GTE's tensors may have their original names under either model_type, with and without a prefix", () => {
  expectSameAs("gte-new", withSettings("gte-new", { model_type: "gte" }));
  const prefixed = new CheckpointCopy("gte-new").tensors((table) => {
    const { bytes } = tensorNamed(table, "embeddings.LayerNorm.bias");
    const head = { dtype: "F32", shape: [1, 48], bytes };
    return renamed(table, (name) => `new.${name}`).set("classifier.weight", head);
  });
  expectSameAs("gte-new", prefixed.directory);
});

test("a GTE reranker in the spelling of transformers gives the same scores", () => {
  const parts: readonly (readonly [string, string])[] = [
    ["new.", "gte."],
    ["encoder.layer.", "layers."],
    ["attention.o_proj", "self_attn.o_proj"],
    ["attn_ln", "post_attention_layernorm"],
    ["mlp_ln", "post_mlp_layernorm"],
  ];
  const thirds = ["q", "k", "v"].map((part) => `self_attn.${part}_proj`);
  const halves = ["up", "gate"].map((part) => `mlp.${part}_proj`);
  const { directory } = new CheckpointCopy("rerank-gte-new").tensors((table) => {
    for (const [name, tensor] of [...table]) {
      const joint = /attention\.qkv_proj|mlp\.up_gate_proj/.exec(name)?.[0];
      if (!joint) continue;
      const names = joint === "mlp.up_gate_proj" ? halves : thirds;
      const [rows = 0, ...inner] = tensor.shape;
      const size = tensor.bytes.length / names.length;
      names.forEach((part, i) => {
        const bytes = tensor.bytes.subarray(i * size, (i + 1) * size);
        const shape = [rows / names.length, ...inner];
        table.set(name.replace(joint, part), { dtype: tensor.dtype, shape, bytes });
      });
      table.delete(name);
    }
    return renamed(table, (name) =>
      parts.reduce((result, [from, to]) => result.replace(from, to), name),
    );
  });
  const logit = (from: string) => {
    const model = loadReranker({ directory: from, device });
    return [...model.start([model.prepare("a query").pair("a document")]).read()];
  };
  expect(logit(directory)).toEqual(logit(fixture("rerank-gte-new")));
});

test("a EuroBERT without its head's prefix loads", () => {
  const bare = new CheckpointCopy("eurobert-mean").tensors((table) =>
    renamed(table, (name) => name.replace("model.", "")),
  );
  expectSameAs("eurobert-mean", bare.directory);
});
