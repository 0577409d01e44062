import { describe, test } from "bun:test";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { loadReranker } from "../../src/models/load-reranker.ts";
import { fixture } from "../fixtures/fixtures.ts";
import { rerankCase, rerankReference } from "../fixtures/rerank-reference.ts";
import { describeCrossEncoders } from "./cross-encoder.ts";
import { describeEmbedders } from "./embedder.ts";
import { expectClose } from "./reference.ts";

const STORAGES = ["f32", "f16", "q8_0"];

describeEmbedders("bert", [
  ...STORAGES.map((storage) => `bert-mean-gguf-${storage}`),
  "bert-gguf-mixed",
  "bert-gguf-k-quants",
  "roberta-mean-gguf-f16",
  "xlm-roberta-mean-gguf-bf16",
]);

describeEmbedders(
  "qwen3",
  STORAGES.map((storage) => `qwen3-embed-gguf-${storage}`),
);

describeEmbedders("nomic_bert", ["nomic-bert-gguf-f16"]);

describeEmbedders("gemma3_text", ["gemma3-embed-gguf-f16"]);

describe("as they are stored", () => {
  const options = { cpuDequantize: "off" } as const;
  describeEmbedders("bert", ["bert-mean-gguf-q8_0", "bert-gguf-mixed"], options);
  describeEmbedders("qwen3", ["qwen3-embed-gguf-q8_0"], options);
});

describeCrossEncoders(["rerank-bert-gguf-f16", "rerank-xlm-roberta-gguf-f16"]);

test("a language model that judges by yes and no gives the reference logits", () => {
  const name = "rerank-qwen3-gguf-q8_0";
  const { cases } = rerankReference(name, z.object({ cases: z.array(rerankCase) }));
  const model = loadReranker({ directory: fixture(name), device: mx.openDevice("cpu") });
  for (const { name: example, input, logit } of cases) {
    const prepared = model.prepare(input.query, input.instruction);
    const actual = model.start([prepared.pair(input.document)]).read();
    prepared.release();
    expectClose(actual, [logit], example, 2e-5);
  }
});
