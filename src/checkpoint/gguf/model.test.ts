import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as mx from "../../../ffi/index.ts";
import { temporaryDirectory } from "../../../test/fixtures/fixtures.ts";
import { ggufBytes, ggufFixture, partsOf, type GgufParts } from "../../../test/gguf.ts";
import { refusalOf } from "../../../test/refusal.ts";
import { loadReranker } from "../../models/load-reranker.ts";
import { loadEmbeddingModel } from "../../models/load-embedder.ts";
import { readCheckpoint } from "../checkpoint.ts";
import { kindOf } from "../kind.ts";
import { readGgufHeader } from "./header.ts";
import { readGgufModel } from "./model.ts";
import { GgufTensors } from "./tensors.ts";

const device = mx.openDevice("cpu");
const directory = temporaryDirectory("gguf-model");

type Parts = ReturnType<typeof partsOf>;

/** A fixture's file after a change. */
function changed(name: string, change: (parts: Parts) => void, rest: Partial<GgufParts> = {}) {
  const parts = partsOf(name);
  change(parts);
  const path = join(directory, "model.gguf");
  writeFileSync(path, ggufBytes({ ...parts, ...rest }));
  return path;
}

const withKey = (name: string, key: string, value: string | number | boolean) =>
  changed(name, ({ metadata }) => metadata.set(key, value));

const BERT = "bert-mean-gguf-q8_0";
const QWEN3 = "qwen3-embed-gguf-q8_0";

describe("refused by name:", () => {
  test.each([
    [BERT, "general.architecture", "jina-bert-v2", 'architecture "jina-bert-v2" is not supported'],
    [BERT, "bert.attention.causal", true, '"bert.attention.causal" is true, supported is false'],
    [BERT, "bert.moe_every_n_layers", 2, '"bert.moe_every_n_layers" is not a supported setting'],
    [BERT, "bert.pooling_type", 9, '"bert.pooling_type" is 9, supported are 0 to 4'],
    [BERT, "bert.pooling_type", 0, 'the pooling "none"'],
    [BERT, "bert.block_count", "two", '"bert.block_count" must be a number'],
    [BERT, "bert.embedding_length", -0.5, '"bert.embedding_length" is -0.5'],
    [QWEN3, "qwen3.rope.scaling.type", "yarn", '"qwen3.rope.scaling.type" is "yarn"'],
    [QWEN3, "qwen3.rope.scaling.factor", 4, '"qwen3.rope.scaling.factor" is not a supported'],
    [QWEN3, "qwen3.attention.value_length", 16, '"qwen3.attention.value_length" is 16'],
    [QWEN3, "qwen3.pooling_type", 4, "rerankers of this architecture are not supported"],
    [QWEN3, "tokenizer.ggml.model", "rwkv", '"tokenizer.ggml.model" is "rwkv"'],
    [QWEN3, "tokenizer.ggml.pre", "deepseek-v3", '"tokenizer.ggml.pre" is "deepseek-v3"'],
    [QWEN3, "tokenizer.ggml.eos_token_id", 70_000, '"tokenizer.ggml.eos_token_id" is 70000'],
  ] as const)("%s %s %p", (name, key, value, message) => {
    const path = withKey(name, key, value);
    const refusal = refusalOf(() => loadEmbeddingModel({ directory: path, device }));
    expect(refusal).toContain(message);
    expect(refusal).toContain(path);
  });

  test("a missing key, a missing tensor and one too many", () => {
    const without = (key: string) => changed(BERT, ({ metadata }) => metadata.delete(key));
    const load = (path: string) => refusalOf(() => loadEmbeddingModel({ directory: path, device }));
    expect(load(without("bert.context_length"))).toContain('"bert.context_length" is missing');
    expect(load(without("tokenizer.ggml.tokens"))).toContain('"tokenizer.ggml.tokens" is missing');
    expect(load(changed(BERT, ({ tensors }) => tensors.delete("token_types.weight")))).toContain(
      'tensor "token_types.weight" is missing',
    );
    const extra = changed(BERT, ({ tensors }) => {
      tensors.set("dense_2.weight", tensors.get("blk.0.attn_q.weight")!);
    });
    expect(load(extra)).toContain('tensor "dense_2.weight" is not one of');
  });

  test("token types of another vocabulary", () => {
    const path = changed(BERT, ({ metadata }) => {
      metadata.set("tokenizer.ggml.token_type", Float64Array.of(1, 2, 3));
    });
    expect(refusalOf(() => loadEmbeddingModel({ directory: path, device }))).toContain(
      '"tokenizer.ggml.token_type" has 3 values for 1000 tokens',
    );
  });

  test("a classifier of BERT that lost its pooler", () => {
    const path = changed("rerank-bert-gguf-f16", ({ tensors }) => {
      for (const part of ["weight", "bias"]) tensors.delete(`cls.${part}`);
    });
    expect(refusalOf(() => loadReranker({ directory: path, device }))).toContain('"cls.weight"');
  });

  test("scales that f16 cannot hold when they are shifted", () => {
    const path = changed(BERT, ({ tensors }) => {
      const q = tensors.get("blk.0.attn_q.weight")!;
      const bytes = Uint8Array.from(q.bytes);
      bytes.set([0x00, 0x7b]); // 57344
      tensors.set("blk.0.attn_q.weight", { ...q, bytes });
    });
    const model = readGgufModel(readGgufHeader(path));
    const name = "encoder.layer.0.attention.self.query.weight";
    expect(refusalOf(() => new GgufTensors(model, "stored").tensor(name))).toContain(
      'tensor "blk.0.attn_q.weight" of Q8_0 has scales that float16 cannot hold',
    );
    expect(new GgufTensors(model, "float32").tensor(name)).toMatchObject({
      packing: { bits: 8, groupSize: 32 },
    });
  });
});

test("what a file is for follows from its pooling, and without one from its family", () => {
  const kind = (path: string) => kindOf(readCheckpoint(path));
  expect(kind(ggufFixture(QWEN3))).toBe("embedding");
  expect(kind(ggufFixture("rerank-xlm-roberta-gguf-f16"))).toBe("reranker");
  expect(kind(changed(QWEN3, ({ metadata }) => metadata.delete("qwen3.pooling_type")))).toBe(
    "chat",
  );
  expect(kind(changed(BERT, ({ metadata }) => metadata.delete("bert.pooling_type")))).toBe(
    "embedding",
  );
});

test("--pooling helps a file that states none", () => {
  const path = withKey(BERT, "bert.pooling_type", 0);
  expect(loadEmbeddingModel({ directory: path, device, pooling: "cls" }).pooling).toBe("cls");
});

test("the stored type is that of most bytes", () => {
  const stored = (name: string) =>
    loadEmbeddingModel({ directory: ggufFixture(name), device }).facts.storedDtype;
  expect(stored(BERT)).toBe("Q8_0");
  expect(stored("bert-gguf-k-quants")).toBe("Q6_K");
  expect(stored("bert-mean-gguf-f16")).toBe("F16");
});

test("what is computed with as it is stored is of one type", () => {
  const dtypes = (name: string) => {
    const tensors = new GgufTensors(readGgufModel(readGgufHeader(ggufFixture(name))), "stored");
    const found = [...tensors.locations.keys()].map((tensor) => tensors.tensor(tensor));
    return new Set(found.map((tensor) => ("scales" in tensor ? tensor.scales : tensor).dtype));
  };
  expect(dtypes("bert-mean-gguf-f32")).toEqual(new Set(["float32"]));
  expect(dtypes("bert-mean-gguf-q8_0")).toEqual(new Set(["float16"]));
  expect(dtypes("bert-gguf-k-quants")).toEqual(new Set(["float16"]));
  expect(dtypes("xlm-roberta-mean-gguf-bf16")).toEqual(new Set(["bfloat16"]));
});
