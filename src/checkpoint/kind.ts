import { join } from "node:path";
import { POOLING_FOLDER } from "../hub/file-names.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { ENCODERS, PICTURE_ENCODERS } from "./model-types.ts";
import { isFile } from "./regular-file.ts";

/** What a checkpoint can be served as. */
export type CheckpointKind = "embedding" | "reranker" | "chat";

const ENCODER_TYPES: ReadonlySet<string> = new Set([...ENCODERS, ...PICTURE_ENCODERS]);

/** Architectures that embed although their family also generates text. */
const EMBEDDING_ARCHITECTURE = /^(T5EncoderModel|Col[A-Z]\w*|\w*Bidirectional\w*Model)$/;

/** Tells what to serve a checkpoint as. Generative rerankers look like chat models: the caller's flag decides. */
export function kindOf(checkpoint: Checkpoint): CheckpointKind {
  const architecture = checkpoint.architectures[0] ?? "";
  if (architecture.endsWith("ForSequenceClassification")) return "reranker";
  const embeds =
    checkpoint.lateInteraction !== undefined ||
    checkpoint.gguf?.pooling !== undefined ||
    checkpoint.modules?.some((module) => module.type === "Pooling") ||
    (!checkpoint.gguf && isFile(join(checkpoint.directory, POOLING_FOLDER, "config.json"))) ||
    ENCODER_TYPES.has(checkpoint.modelType) ||
    EMBEDDING_ARCHITECTURE.test(architecture) ||
    isBidirectionalDecoder(checkpoint, architecture);
  return embeds ? "embedding" : "chat";
}

function isBidirectionalDecoder({ config }: Checkpoint, architecture: string): boolean {
  return (
    (architecture === "Gemma3TextModel" && config.use_bidirectional_attention === true) ||
    (architecture === "Ministral3Model" && config.is_causal === false)
  );
}
