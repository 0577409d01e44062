/**
 * What a model worker can be asked to do, and what it answers. Free of any wire dialect: dialects parse
 * requests into these jobs and render these results.
 */
import type { ModelFacts } from "../pipeline/model-facts.ts";
import type { NormalizeMode } from "../pipeline/normalize.ts";
import type { Items } from "./items.ts";

/** One thing to embed: text for the tokenizer, or token ids that are used verbatim (no specials, no prompt). */
export type EmbedItem = { readonly text: string } | { readonly ids: Int32Array };

/** Where items came from, so that errors can name `input[3]` (or `input`, when it was not a list). */
export interface ItemsField {
  readonly name: string;
  readonly isList: boolean;
}

export interface EmbedJob {
  readonly kind: "embed";
  readonly items: Items;
  readonly field: ItemsField;
  /** Task text for families with an instruction format; beats `promptName`. */
  readonly instruction?: string | undefined;
  /** Name of one of the checkpoint's prompts, or `query` / `document`. Already known to be valid. */
  readonly promptName?: string | undefined;
  /** Keep this many leading components, then normalise again. 1…dim. */
  readonly dimensions?: number | undefined;
  /** Absent: `--embd-normalize`, else what the checkpoint's modules say. */
  readonly normalize?: NormalizeMode | undefined;
  /** false: an item longer than the model's limit fails the whole job instead of being cut. */
  readonly truncate: boolean;
}

/** Most components in one result, 1 GiB: what a request may make the server hold is bounded before it is queued. */
export const MAX_RESULT_FLOATS = 2 ** 28;

export interface EmbedResult {
  readonly kind: "embed";
  /** All vectors one after the other, row-major [rows, dim], f32, every component finite. */
  readonly vectors: Float32Array<ArrayBuffer>;
  readonly dim: number;
  /** Rows per item; absent for single-vector models (one row each). */
  readonly rowsPerItem?: Int32Array<ArrayBuffer> | undefined;
  /** Tokens the model saw per item, specials included, after cutting. */
  readonly tokens: Int32Array<ArrayBuffer>;
  /** How many items were cut to the length limit. */
  readonly truncated: number;
}

export interface TokenizeJob {
  readonly kind: "tokenize";
  readonly text: string;
  /** Add the specials of the tokenizer's post-processor ([CLS] … [SEP]). */
  readonly addSpecial: boolean;
  /** Also return the text of each token. */
  readonly withPieces: boolean;
}

interface TokenizeResult {
  readonly kind: "tokenize";
  readonly ids: Int32Array<ArrayBuffer>;
  readonly pieces?: readonly string[] | undefined;
}

export interface DetokenizeJob {
  readonly kind: "detokenize";
  /** Every id is in [0, vocabSize). */
  readonly ids: Int32Array;
}

interface DetokenizeResult {
  readonly kind: "detokenize";
  readonly text: string;
}

export interface RerankJob {
  readonly kind: "rerank";
  readonly query: string;
  /** The documents, texts only. */
  readonly items: Items;
  readonly field: ItemsField;
  /** Task text for models that take one (never blank); for a ranking embedder it formats the query only. */
  readonly instruction?: string | undefined;
  /** false: a pair longer than the model's limit fails the whole job instead of being cut. */
  readonly truncate: boolean;
}

export interface RerankResult {
  readonly kind: "rerank";
  /** [documents] sigmoid(logit) in [0, 1]; for an embedder the cosine. Finite. */
  readonly scores: Float32Array<ArrayBuffer>;
  /** [documents] the logit; for an embedder the cosine again. Finite. */
  readonly rawScores: Float32Array<ArrayBuffer>;
  /**
   * Tokens that count as used, per document: those of the pair as if it ran alone. An embedder reads the query once:
   * its tokens are added to the first document's.
   */
  readonly tokens: Int32Array<ArrayBuffer>;
  /** How many pairs were cut to the length limit. */
  readonly truncated: number;
}

export type Job = EmbedJob | RerankJob | TokenizeJob | DetokenizeJob;
export type Result = EmbedResult | RerankResult | TokenizeResult | DetokenizeResult;
export type ResultOf<J extends Job> = Extract<Result, { kind: J["kind"] }>;

/** Facts about a loaded model; everything that requests are validated against before they are queued. */
export type ModelInfo = EmbedderInfo | RerankerInfo;

/** What is known of every loaded model. */
interface LoadedModel extends ModelFacts {
  readonly device: "cpu" | "gpu";
  /** Of the factors of matrix products; absent on the GPU. */
  readonly cpuPrecision?: "f32" | "bf16" | undefined;
  /** Most tokens of one batch; a longer text is a batch of its own. */
  readonly batchTokens: number;
  /** Tokens of one batch of a bulk job at the pace that was measured at start; at most `batchTokens`. */
  readonly sliceTokens: number;
  /** Most tokens of one request; absent: no limit. */
  readonly requestTokens?: number | undefined;
}

export interface EmbedderInfo extends LoadedModel {
  readonly kind: "embedding";
  /** Width of the vectors it returns. */
  readonly dim: number;
  /** Pooling modes in the order they are concatenated, e.g. `mean`. */
  readonly pooling: string;
  /** What happens to a vector unless the request says otherwise: `l2`, `none`, or the `--embd-normalize` number. */
  readonly normalization: string;
  readonly multiVector: boolean;
  /** Names in the checkpoint's own prompt table. */
  readonly promptNames: readonly string[];
}

export interface RerankerInfo extends LoadedModel {
  readonly kind: "reranker";
  /** Whether `instruction` means something to it. */
  readonly takesInstruction: boolean;
}

/** The buffers to transfer with a result. */
export function resultBuffers(result: Result): ArrayBuffer[] {
  switch (result.kind) {
    case "embed":
      return [
        result.vectors.buffer,
        result.tokens.buffer,
        ...(result.rowsPerItem ? [result.rowsPerItem.buffer] : []),
      ];
    case "rerank":
      return [result.scores.buffer, result.rawScores.buffer, result.tokens.buffer];
    case "tokenize":
      return [result.ids.buffer];
    case "detokenize":
      return [];
  }
}
