import { describe } from "bun:test";
import { describeCrossEncoders } from "./cross-encoder.ts";
import { describeEmbedders } from "./embedder.ts";

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
