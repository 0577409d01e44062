import { z } from "zod";
import { modelEmbedFields } from "../embed-fields.ts";

/** POST /v1/embeddings. The shapes of `input` are told apart in `../input.ts`. */
export const embeddingsSchema = z.object({ ...modelEmbedFields, input: z.unknown().optional() });
