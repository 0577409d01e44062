import { z } from "zod";
import { embedFields } from "../embed-fields.ts";
import { optional } from "../request.ts";

/** POST /embed of text-embeddings-inference. */
export const embedSchema = z.object({
  ...embedFields,
  inputs: z.unknown().optional(),
  normalize: optional.boolean,
});
