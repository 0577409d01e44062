import { z } from "zod";
import { modelEmbedFields } from "../embed-fields.ts";
import { optional } from "../request.ts";

/** POST /embedding and /embeddings. `content` is the older name of `input`. */
export const embeddingSchema = z.object({
  ...modelEmbedFields,
  input: z.unknown().optional(),
  content: z.unknown().optional(),
});

/** Tokenizing holds up the model's worker, about a second at this length. */
const MAX_TOKENIZE_CHARACTERS = 2 ** 20;

/** POST /tokenize. */
export const tokenizeSchema = z.object({
  model: optional.string,
  content: z
    .string("must be a string")
    .max(
      MAX_TOKENIZE_CHARACTERS,
      `is longer than ${MAX_TOKENIZE_CHARACTERS} characters: tokenize it in parts`,
    ),
  add_special: optional.boolean,
  with_pieces: optional.boolean,
});

/** POST /detokenize. The ids are checked in `../input.ts`. */
export const detokenizeSchema = z.object({
  model: optional.string,
  tokens: z.array(z.unknown(), "must be a list of token ids"),
});
