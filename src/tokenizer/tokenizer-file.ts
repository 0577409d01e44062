import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { checkJson, readJson } from "../checkpoint/json-file.ts";
import { isFile } from "../checkpoint/regular-file.ts";

/** Ids and types of tokens are kept as int32. */
const MAX_INT32 = 0x7fff_ffff;
export const int32Index = z.int().min(0).max(MAX_INT32);

const typedStep = z.looseObject({ type: z.string() }).nullable().default(null);

type Merge = string | readonly [string, string];

/** Each piece with its id, or in the order of ids with its score. */
type Vocabulary = Readonly<Record<string, number>> | (readonly [piece: string, score: number])[];

// Published lists have hundreds of thousands of entries: a schema for each would take most of the time of a load.

function isListOfMerges(value: unknown): value is readonly Merge[] {
  const isPair = (entry: unknown) =>
    Array.isArray(entry)
      ? entry.length === 2 && entry.every((piece) => typeof piece === "string")
      : typeof entry === "string" && entry.includes(" ");
  return Array.isArray(value) && value.every(isPair);
}

function isVocabulary(value: unknown): value is Vocabulary {
  if (Array.isArray(value)) return value.every(isScoredPiece);
  return typeof value === "object" && value !== null && Object.values(value).every(isInt32Index);
}

function isScoredPiece(entry: unknown): boolean {
  if (!Array.isArray(entry) || entry.length !== 2) return false;
  return typeof entry[0] === "string" && Number.isFinite(entry[1]);
}

function isInt32Index(id: unknown): boolean {
  return typeof id === "number" && Number.isInteger(id) && id >= 0 && id <= MAX_INT32;
}

const tokenizerFile = z.looseObject({
  added_tokens: z
    .array(
      z.looseObject({
        id: int32Index,
        content: z.string(),
        lstrip: z.boolean().default(false),
        rstrip: z.boolean().default(false),
        single_word: z.boolean().default(false),
        normalized: z.boolean().default(false),
      }),
    )
    .default([]),
  normalizer: typedStep,
  pre_tokenizer: typedStep,
  post_processor: typedStep,
  decoder: typedStep,
  model: z.looseObject({
    type: z.string(),
    vocab: z.custom<Vocabulary>(
      isVocabulary,
      "must map pieces to their ids, or list them with their scores",
    ),
    merges: z.custom<readonly Merge[]>(isListOfMerges, "must be a list of pairs").optional(),
    unk_id: int32Index.nullish(),
    unk_token: z.string().nullish(),
    byte_fallback: z.boolean().nullish(),
    max_input_chars_per_word: z.int().positive().optional(),
  }),
});

/** tokenizer.json: the only truth for token ids. Keys that nothing here reads are kept as they are. */
export type TokenizerFile = z.output<typeof tokenizerFile>;

/** What the reference library takes for missing keys of a WordPiece model. */
const WORD_PIECE = { unk_token: "[UNK]", continuing_subword_prefix: "##" };

/** Reads tokenizer.json of a model directory. Throws CheckpointError where it is missing, broken or unknown. */
export function readTokenizerFile(directory: string): { path: string; file: TokenizerFile } {
  const path = join(directory, "tokenizer.json");
  if (!isFile(path)) {
    throw new CheckpointError(
      `${path} is missing; save the tokenizer in the fast (tokenizer.json) format`,
    );
  }
  return { path, file: checkedTokenizerFile(path, readJson(path, z.unknown())) };
}

/** Checks the content of a tokenizer.json, `path` says where it is from. Throws CheckpointError naming the key. */
export function checkedTokenizerFile(path: string, content: unknown): TokenizerFile {
  const file = checkJson(path, content, tokenizerFile);
  const fault = faultOf(file);
  if (fault !== undefined) throw new CheckpointError(`${path}: ${fault}`);
  if (file.model.type === "WordPiece") file.model = { ...WORD_PIECE, ...file.model };
  return file;
}

/** Why the model of a tokenizer cannot be used; undefined where it can. */
function faultOf(file: TokenizerFile): string | undefined {
  const { type, vocab, merges, byte_fallback } = file.model;
  const isList = Array.isArray(vocab);
  switch (type) {
    case "Unigram":
      if (!isList)
        return `"model.vocab" of a Unigram model must be a list of pieces with their scores`;
      if (byte_fallback) return `"model.byte_fallback" of a Unigram model is not supported`;
      break;
    case "BPE":
    case "WordPiece":
      if (isList) return `"model.vocab" of a ${type} model must map pieces to their ids`;
      if (type === "BPE" && !merges) return `"model.merges" of the BPE model is missing`;
      break;
    default:
      return `model type "${type}" is not supported; supported are WordPiece, BPE, Unigram`;
  }
  if (Object.keys(vocab).length === 0) return `"model.vocab" is empty`;
  return unknownFaultOf(file);
}

/** What stands for pieces that are not in the vocabulary must be in it. */
function unknownFaultOf({ model, added_tokens }: TokenizerFile): string | undefined {
  const {
    type,
    vocab,
    unk_id,
    unk_token = type === "WordPiece" ? WORD_PIECE.unk_token : null,
  } = model;
  if (Array.isArray(vocab)) {
    if (unk_id == null) return `"model.unk_id" of the Unigram model is missing`;
    if (unk_id < vocab.length) return undefined;
    return `"model.unk_id" is ${unk_id}, which is not in the vocabulary of ${vocab.length}`;
  }
  if (unk_token === null) {
    return type === "WordPiece" ? `"model.unk_token" of the WordPiece model is missing` : undefined;
  }
  const known =
    Object.hasOwn(vocab, unk_token) || added_tokens.some(({ content }) => content === unk_token);
  return known ? undefined : `"model.unk_token" is "${unk_token}", which is not in the vocabulary`;
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
