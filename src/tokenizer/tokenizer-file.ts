import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { readJson } from "../checkpoint/json-file.ts";

const typedStep = z.looseObject({ type: z.string() }).nullable().default(null);

const tokenizerFile = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ id: z.int().nonnegative(), content: z.string() }))
    .default([]),
  normalizer: typedStep,
  pre_tokenizer: typedStep,
  post_processor: typedStep,
  decoder: typedStep,
  model: z.looseObject({
    type: z.string(),
    vocab: z.union([
      z.record(z.string(), z.int().nonnegative()),
      z.array(z.tuple([z.string(), z.number()])),
    ]),
    unk_id: z.int().nonnegative().nullish(),
    max_input_chars_per_word: z.int().positive().optional(),
  }),
});

/** tokenizer.json: the only truth for token ids. Keys that nothing here reads are kept as they are. */
export type TokenizerFile = z.output<typeof tokenizerFile>;

/** Reads tokenizer.json of a model directory. Throws CheckpointError where it is missing, broken or unknown. */
export function readTokenizerFile(directory: string): { path: string; file: TokenizerFile } {
  const path = join(directory, "tokenizer.json");
  if (!existsSync(path)) {
    throw new CheckpointError(
      `${path} is missing; save the tokenizer in the fast (tokenizer.json) format`,
    );
  }
  const file = readJson(path, tokenizerFile);
  if (!["WordPiece", "BPE", "Unigram"].includes(file.model.type)) {
    throw new CheckpointError(
      `${path}: model type "${file.model.type}" is not supported; supported are WordPiece, BPE, Unigram`,
    );
  }
  return { path, file };
}

/** Every piece of text that has an id, with its id. */
export function* vocabularyOf(
  file: TokenizerFile,
): Generator<readonly [piece: string, id: number]> {
  const { vocab } = file.model;
  if (Array.isArray(vocab)) {
    for (const [id, [piece]] of vocab.entries()) yield [piece, id];
  } else {
    yield* Object.entries(vocab);
  }
  for (const { content, id } of file.added_tokens) yield [content, id];
}
