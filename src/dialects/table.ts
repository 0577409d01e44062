import type { Dialect } from "./dialect.ts";
import { llamaEmbedding } from "./llama/embedding.ts";
import { llamaDetokenize, llamaTokenize } from "./llama/tokenize.ts";
import { openaiEmbeddings } from "./openai/embeddings.ts";
import { rerank } from "./rerank/rerank.ts";
import { teiEmbed } from "./tei/embed.ts";

/** Every dialect under the name that the HTTP thread and the codec worker share. */
export const dialects = {
  "openai/embeddings": openaiEmbeddings,
  "llama/embedding": llamaEmbedding,
  "llama/tokenize": llamaTokenize,
  "llama/detokenize": llamaDetokenize,
  rerank,
  "tei/embed": teiEmbed,
} satisfies Record<string, Dialect>;

export type DialectName = keyof typeof dialects;
