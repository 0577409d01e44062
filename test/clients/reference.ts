/** Texts and token ids with the vectors that the reference implementation gives for bert-mean. */
import { expected, referenceCase } from "../checkpoints.ts";

export const MODEL = "bert-mean";

export const one = referenceCase(MODEL, "short");
export const tokenIds = referenceCase(MODEL, "token_ids");

const textCases = expected(MODEL).cases.filter((entry) => typeof entry.input === "string");
export const many = {
  texts: textCases.map((entry) => String(entry.input)),
  vectors: textCases.map((entry) => entry.embedding),
  tokens: textCases.reduce((sum, entry) => sum + entry.prompt_tokens, 0),
};
