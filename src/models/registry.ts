import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { bert } from "./bert.ts";
import { debertaV2 } from "./deberta_v2.ts";
import { distilbert } from "./distilbert.ts";
import { embeddingGemma2 } from "./embedding_gemma2.ts";
import { eurobert } from "./eurobert.ts";
import type { ModelFamily } from "./family.ts";
import { gemma3Text } from "./gemma3_text.ts";
import { gte, gteNew } from "./gte.ts";
import { jinaEmbeddingsV3 } from "./jina_embeddings_v3.ts";
import { llama } from "./llama.ts";
import { llamaBidirec } from "./llama_bidirec.ts";
import { ministral3 } from "./ministral3.ts";
import { mistral } from "./mistral.ts";
import { modernbert } from "./modernbert.ts";
import { mpnet } from "./mpnet.ts";
import { nomicBert } from "./nomic_bert.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import { roberta } from "./roberta.ts";
import { t5 } from "./t5.ts";
import { xlmRoberta } from "./xlm_roberta.ts";

/** Every `model_type` that loads. */
export const families: readonly ModelFamily[] = [
  bert,
  roberta,
  xlmRoberta,
  distilbert,
  mpnet,
  debertaV2,
  nomicBert,
  gte,
  gteNew,
  jinaEmbeddingsV3,
  modernbert,
  eurobert,
  t5,
  qwen2,
  qwen3,
  llama,
  llamaBidirec,
  mistral,
  ministral3,
  gemma3Text,
  embeddingGemma2,
];

/** The family of a checkpoint's `model_type`. Throws CheckpointError listing the known ones for any other. */
export function familyOf(checkpoint: Checkpoint): ModelFamily {
  const family = families.find(({ modelType }) => modelType === checkpoint.modelType);
  if (family) return family;
  const known = families.map(({ modelType }) => modelType).join(", ");
  throw new CheckpointError(
    `config.json: model_type "${checkpoint.modelType}" is not supported (known: ${known})`,
  );
}
