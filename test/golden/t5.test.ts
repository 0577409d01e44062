import { describeEmbedders } from "./embedder.ts";

describeEmbedders("t5", ["t5-encoder", "t5-encoder-gated"]);
