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

describeEmbedders("gemma3_text", ["gemma3-embed-gguf-f16"]);

describeCrossEncoders(["rerank-bert-gguf-f16", "rerank-xlm-roberta-gguf-f16"]);
