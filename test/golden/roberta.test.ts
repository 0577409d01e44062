import { describeEmbedders } from "./embedder.ts";

describeEmbedders("roberta", ["roberta-mean"]);
describeEmbedders("xlm-roberta", ["xlm-roberta-mean", "xlm-roberta-cls"]);
