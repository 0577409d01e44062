import { describeEmbedders } from "./embedder.ts";

describeEmbedders("qwen2", ["qwen2-embed", "qwen2-embed-bidirectional"]);
describeEmbedders("mistral", ["mistral-embed"]);
describeEmbedders("llama_bidirec", ["llama-bidirec"]);
describeEmbedders("ministral3", ["ministral3-embed"]);
describeEmbedders("gemma3_text", ["gemma3-embed"]);
describeEmbedders("embedding_gemma2", ["embedding-gemma2-text"]);
