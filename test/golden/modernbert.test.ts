import { describeEmbedders } from "./embedder.ts";

describeEmbedders("modernbert", ["modernbert-mean", "modernbert-cls"]);
