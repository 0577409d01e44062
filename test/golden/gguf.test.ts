import { describeEmbedders } from "./embedder.ts";

const STORAGES = ["f32", "f16", "q8_0"];

describeEmbedders(
  "bert",
  STORAGES.map((storage) => `bert-mean-gguf-${storage}`),
);

describeEmbedders(
  "qwen3",
  STORAGES.map((storage) => `qwen3-embed-gguf-${storage}`),
);
