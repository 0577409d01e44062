import type { ModelFamily } from "./family.ts";
import { roberta } from "./roberta.ts";

/** XLM-RoBERTa (Conneau et al. 2020): RoBERTa's network with another vocabulary. */
export const xlmRoberta: ModelFamily = {
  ...roberta,
  modelType: "xlm-roberta",
  publishedAs: "BGE-M3, multilingual E5, Arctic Embed L v2, bge-reranker",
};
