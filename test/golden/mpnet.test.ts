import { describeEmbedders } from "./embedder.ts";

describeEmbedders("mpnet", ["mpnet-mean"]);
