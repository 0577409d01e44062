/** Families without a language-model head: whatever their architecture is called, they embed. */
export const ENCODERS = [
  "bert",
  "roberta",
  "xlm-roberta",
  "distilbert",
  "mpnet",
  "deberta-v2",
  "nomic_bert",
  "gte",
  "new",
  "jina_embeddings_v3",
  "modernbert",
  "eurobert",
  "llama_bidirec",
  "embedding_gemma2",
] as const;

/** Families that generate text as well: the files of a checkpoint tell what it is. */
export const GENERATORS = [
  "t5",
  "qwen2",
  "qwen3",
  "llama",
  "mistral",
  "ministral3",
  "gemma3_text",
] as const;

/** Encoders of pictures, which do not load: known so that they are not taken for chat models. */
export const PICTURE_ENCODERS = ["clip", "llama_nemotron_vl", "siglip", "siglip2"] as const;

/** A `model_type` that loads; the registry of models has the network of each. */
export type ModelType = (typeof ENCODERS | typeof GENERATORS)[number];
