import { describeEmbedders } from "./embedder.ts";

describeEmbedders("nomic_bert", ["nomic-bert", "nomic-bert-hf"]);
describeEmbedders("gte", ["gte-hf"]);
describeEmbedders("new", ["gte-new"]);
describeEmbedders("jina_embeddings_v3", ["jina-v3-base"]);
describeEmbedders("eurobert", ["eurobert-mean"]);
