import { describeEmbedders } from "./embedder.ts";

describeEmbedders("distilbert", ["distilbert-mean", "distilbert-dense"]);
