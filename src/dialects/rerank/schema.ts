import { z } from "zod";
import { optional } from "../request.ts";

/** POST /v1/rerank and its other paths. The shapes of the query and the items are told apart in `items.ts`. */
export const rerankSchema = z.object({
  model: optional.string,
  query: z.unknown().optional(),
  documents: z.unknown().optional(),
  texts: z.unknown().optional(),
  top_n: z
    .number("must be an integer, 1 or more")
    .refine((n) => Number.isInteger(n) && n >= 1, "must be an integer, 1 or more")
    .nullish(),
  return_documents: optional.boolean,
  return_text: optional.boolean,
  raw_scores: optional.boolean,
  instruction: optional.string,
  truncate: optional.boolean,
});
