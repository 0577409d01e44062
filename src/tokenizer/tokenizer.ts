import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import type { GgufModel } from "../checkpoint/gguf/model.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { reasonOf } from "../native/thrown.ts";
import { withClosingToken } from "./closing-token.ts";
import { tokenizerFileOf } from "./gguf/tokenizer-of-gguf.ts";
import { LeadingTokens, type EncodedPart } from "./leading-tokens.ts";
import { lowerCasing } from "./lower-casing.ts";
import { faithful } from "./normalizer.ts";
import { keptOfPair } from "./pair-truncation.ts";
import { templatesOf, type TemplatePart, type Templates } from "./post-processor.ts";
import { faithfulPreTokenizer } from "./pre-tokenizer.ts";
import { TextPipeline } from "./text-pipeline.ts";
import { readTokenizerFile, vocabularyOf, type TokenizerFile } from "./tokenizer-file.ts";
import { splitsAtMetaspace, Unigram } from "./unigram.ts";

/** One text as the model sees it. */
export interface Encoding {
  /** [T] token ids, special tokens included. */
  readonly ids: Int32Array;
  /** [T] segment ids; absent: all 0. */
  readonly typeIds?: Int32Array;
  /** Whether the text was cut to fit. */
  readonly truncated: boolean;
}

/** What of a checkpoint says where its tokenizer is. */
type TokenizerSource = Pick<Checkpoint, "transformerDirectory" | "lowerCase"> & {
  readonly gguf?: Pick<GgufModel, "header">;
};

interface TokenizerOptions {
  /** Texts are lower-cased before all else, unless the tokenizer does so itself. */
  readonly lowerCase?: boolean;
}

/** Rows of two texts, the first of which is the same in all. */
interface Pairs {
  /** Ids of the first text, as many of them as a row can hold. */
  readonly first: Int32Array;
  with(second: string): Encoding;
}

interface EncodeOptions {
  /** Most tokens of the row, special tokens included. Absent: no limit. */
  readonly maxLength?: number;
  /** Whether to put the checkpoint's special tokens around the text. Default: true. */
  readonly addSpecial?: boolean;
}

/**
 * What the library may take from tokenizer_config.json. Several of its keys (`remove_space`,
 * `do_lowercase_and_remove_accent`, …) would change ids or text, so it gets none: tokenizer.json decides alone.
 */
const LIBRARY_CONFIG = { clean_up_tokenization_spaces: false };

/**
 * Of two texts that are both cut the longer one keeps one token more where the limit is odd. Texts that both have
 * this many tokens count as equally long, so that long ones need not be tokenized to their ends.
 */
const COMPARED_TOKENS = 1024;

/** The library builds its own slow Unigram from the file's model; this keeps it from doing so. */
const MODEL_TO_REPLACE = { type: "BPE", vocab: {}, merges: [] };

/** Text to token ids and back, as tokenizer.json says; padding and truncation stored in it are ignored. */
export class Tokenizer {
  /** One more than the largest id. */
  readonly vocabSize: number;
  /** Special tokens before a single text. */
  readonly singlePrefix: Int32Array;
  /** Special tokens after a single text. */
  readonly singleSuffix: Int32Array;
  /** How many special tokens a single text gets, and a pair of texts. */
  readonly singleSpecials: number;
  readonly pairSpecials: number;
  /** The rows that texts are put into. */
  readonly templates: Templates;
  readonly #library: LibraryTokenizer;
  readonly #pipeline: TextPipeline;
  /** Ids of added tokens by their content. */
  readonly #added: ReadonlyMap<string, number>;
  readonly #leadingTokens: LeadingTokens;

  private constructor(path: string, file: TokenizerFile, templates: Templates) {
    this.templates = templates;
    const { single } = templates;
    this.#library = buildLibraryTokenizer(path, file);
    this.#added = new Map(file.added_tokens.map(({ content, id }) => [content, id]));
    this.#pipeline = new TextPipeline(this.#library, file.added_tokens);
    this.#leadingTokens = new LeadingTokens(file, (text) => this.#encodeWhole(text));
    const textAt = single.findIndex((part) => part.kind === "text");
    this.singlePrefix = specialIds(single.slice(0, textAt));
    this.singleSuffix = specialIds(single.slice(textAt));
    this.singleSpecials = specialIds(single).length;
    this.pairSpecials = specialIds(this.templates.pair).length;
    let largestId = -1;
    for (const [, id] of vocabularyOf(file)) largestId = Math.max(largestId, id);
    this.vocabSize = largestId + 1;
  }

  /** The tokenizer of a checkpoint. Throws CheckpointError where it is missing, broken or unknown. */
  static of({ gguf, transformerDirectory, lowerCase }: TokenizerSource): Tokenizer {
    if (gguf === undefined) return Tokenizer.load(transformerDirectory, { lowerCase });
    const { path } = gguf.header;
    const file = tokenizerFileOf(gguf.header);
    return new Tokenizer(path, file, templatesOf(path, file.post_processor));
  }

  /** Reads tokenizer.json of a model directory. Throws CheckpointError where it is missing, broken or unknown. */
  static load(directory: string, { lowerCase = false }: TokenizerOptions = {}): Tokenizer {
    const { path, file } = readTokenizerFile(directory);
    const templates = withClosingToken(templatesOf(path, file.post_processor), directory, file);
    return new Tokenizer(path, lowerCase ? lowerCasing(file) : file, templates);
  }

  /**
   * The ids of a text. A text over `maxLength` is cut on the right, special tokens stay whole; special tokens written
   * out in the text are read as such; halves of surrogate pairs count as U+FFFD. The time is bounded by `maxLength`,
   * not by the length of the text, except where a text holds nothing to cut at.
   */
  encode(text: string, { maxLength = Infinity, addSpecial = true }: EncodeOptions = {}): Encoding {
    const specials = addSpecial ? this.singleSpecials : 0;
    const limit = Math.max(0, maxLength - specials);
    const found = this.#leadingTokens.of(text.toWellFormed(), limit + 1);
    const truncated = found.length > limit;
    const content = truncated ? found.subarray(0, limit) : found;
    if (!addSpecial) return { ids: Int32Array.from(content), truncated };
    return { ...filled(this.templates.single, { A: content }), truncated };
  }

  /**
   * Rows of two texts, the first of which is tokenized once for all. Where a row is over `maxLength`, the
   * longer text is cut on the right until both are of one length, then both are (`longest_first`); special tokens stay
   * whole. Special tokens written out and the time it takes are as in `encode`.
   */
  pairsWith(first: string, maxLength: number): Pairs {
    const { pair } = this.templates;
    const limit = Math.max(0, maxLength - this.pairSpecials);
    const counted = Math.max(limit + 1, COMPARED_TOKENS);
    const leading = (text: string) => this.#leadingTokens.of(text.toWellFormed(), counted);
    const a = leading(first);
    return {
      first: a.subarray(0, limit),
      with(second) {
        const b = leading(second);
        const kept = keptOfPair({ first: a.length, second: b.length }, limit);
        const texts = { A: a.subarray(0, kept.first), B: b.subarray(0, kept.second) };
        const truncated = kept.first < a.length || kept.second < b.length;
        return { ...filled(pair, texts), truncated };
      },
    };
  }

  /** The id of a piece of the vocabulary, spelled as in tokenizer.json; undefined where it has none. */
  idOf(piece: string): number | undefined {
    return this.#added.get(piece) ?? this.#library.token_to_id(piece);
  }

  /** The text of ids, special tokens included. Ids outside of the vocabulary are a RangeError. */
  decode(ids: Int32Array): string {
    this.#requireKnown(ids);
    return ids.length === 0 ? "" : this.#library.decode(Array.from(ids));
  }

  /** The text of each id alone; bytes that are no whole character show as U+FFFD. */
  pieces(ids: Int32Array): string[] {
    this.#requireKnown(ids);
    return Array.from(ids, (id) => this.#library.decode([id]));
  }

  #encodeWhole(text: string): EncodedPart {
    const ids = Int32Array.from(this.#pipeline.encode(text));
    const { model } = this.#library;
    return model instanceof Unigram ? { ids, unsettledTokens: model.unsettledTokens } : { ids };
  }

  #requireKnown(ids: Int32Array): void {
    const unknown = ids.find((id) => id < 0 || id >= this.vocabSize);
    if (unknown !== undefined) {
      throw new RangeError(`token id ${unknown} is outside of the vocabulary of ${this.vocabSize}`);
    }
  }
}

function buildLibraryTokenizer(path: string, file: TokenizerFile): LibraryTokenizer {
  try {
    const unigram = unigramOf(file);
    const library = new LibraryTokenizer(
      unigram ? { ...file, model: MODEL_TO_REPLACE } : file,
      LIBRARY_CONFIG,
    );
    if (unigram) library.model = unigram;
    else removeAddedWords(library, file);
    library.normalizer = faithful(library.normalizer);
    library.pre_tokenizer = faithfulPreTokenizer(library.pre_tokenizer);
    return library;
  } catch (error) {
    throw new CheckpointError(`${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** The library makes words of the model of all added tokens, so that parts of other words could be some. */
function removeAddedWords(
  { model }: LibraryTokenizer,
  { added_tokens, model: own }: TokenizerFile,
) {
  if (Array.isArray(own.vocab)) return;
  for (const { content } of added_tokens) {
    const id = Object.hasOwn(own.vocab, content) ? own.vocab[content] : undefined;
    if (id !== undefined) model?.tokens_to_ids.set(content, id);
    else if (content !== own.unk_token) model?.tokens_to_ids.delete(content);
  }
}

function unigramOf({ model, pre_tokenizer, added_tokens }: TokenizerFile): Unigram | undefined {
  if (model.type !== "Unigram" || !Array.isArray(model.vocab)) return undefined;
  const unigram = new Unigram({
    vocab: model.vocab,
    unknownId: model.unk_id ?? undefined,
    splitsWords: splitsAtMetaspace(pre_tokenizer),
  });
  for (const { content, id } of added_tokens) {
    unigram.vocab[id] = content;
  }
  return unigram;
}

/** `texts`: token ids of the texts that the template has. */
function filled(
  template: readonly TemplatePart[],
  texts: { readonly A: Int32Array; readonly B?: Int32Array },
): Pick<Encoding, "ids" | "typeIds"> {
  const pieces = template.map((part) => ({
    ids: part.kind === "special" ? [part.id] : (texts[part.text] ?? []),
    typeId: part.typeId,
  }));
  const length = pieces.reduce((sum, { ids }) => sum + ids.length, 0);
  const ids = new Int32Array(length);
  const typeIds = new Int32Array(length);
  let end = 0;
  for (const piece of pieces) {
    ids.set(piece.ids, end);
    typeIds.fill(piece.typeId, end, end + piece.ids.length);
    end += piece.ids.length;
  }
  const hasTypes = template.some((part) => part.typeId !== 0);
  return hasTypes ? { ids, typeIds } : { ids };
}

function specialIds(parts: readonly TemplatePart[]): Int32Array {
  return Int32Array.from(parts.flatMap((part) => (part.kind === "special" ? [part.id] : [])));
}
