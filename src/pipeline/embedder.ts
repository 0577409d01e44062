import type { Encoder } from "../nn/encoder.ts";
import { raggedBatch, type TokenRow } from "../nn/ragged.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { ModuleChain } from "./modules.ts";
import { L2, normalized, UNNORMALIZED, type NormalizeMode } from "./normalize.ts";
import { pendingValues, type PendingValues } from "./pending-values.ts";
import { promptText, type PromptChoice, type PromptTable } from "./prompts.ts";
import { requireUsable } from "./unusable-text.ts";

/** Text for the tokenizer, or token ids that are used verbatim (no specials, no prompt). */
export type EmbedInput = { readonly text: string } | { readonly ids: Int32Array };

/** One tokenized input. */
export interface EmbedRow extends TokenRow {
  /** Leading tokens that pooling leaves out; 0 where the checkpoint pools its prompts too. */
  readonly promptTokens: number;
  /** Something was cut off to fit the model's limit. */
  readonly truncated: boolean;
}

/** [B, rawDim] vectors that are being computed. */
export type PendingVectors = PendingValues;

export interface FinishOptions {
  /** Keep this many leading components. 1…dim. */
  readonly dimensions?: number | undefined;
  /** Absent: the server's setting, else what the checkpoint's modules do. */
  readonly normalize?: NormalizeMode | undefined;
}

/** What an EmbeddingModel is put together from. */
export interface EmbeddingParts {
  /** What error messages call it. */
  readonly name: string;
  readonly family: string;
  readonly encoder: Encoder;
  readonly chain: ModuleChain;
  readonly tokenizer: Tokenizer;
  readonly prompts: PromptTable;
  /** Longest row in tokens, specials included. */
  readonly maxLength: number;
  /** Overrides what the checkpoint's modules do. */
  readonly normalize?: NormalizeMode | undefined;
  readonly storedDtype: string;
  readonly weightBytes: number;
}

/** Texts in, vectors out: prompt, tokenizer, network, pooling, Dense and normalisation of one checkpoint. */
export class EmbeddingModel {
  /** `model_type` of the checkpoint. */
  readonly family: string;
  /** Width of the vectors. */
  readonly dim: number;
  /** Longest row in tokens, specials included. */
  readonly maxLength: number;
  /** Every token id must be below it. */
  readonly vocabSize: number;
  /** Modes in the order in which they are concatenated, e.g. `mean` or `cls+mean`. */
  readonly pooling: string;
  /** What happens to a vector unless the request says otherwise: `l2`, `none` or the number of the mode. */
  readonly normalization: string;
  readonly multiVector = false;
  /** Names in the checkpoint's own prompt table. */
  readonly promptNames: readonly string[];
  readonly storedDtype: string;
  readonly weightBytes: number;
  readonly tokenizer: Tokenizer;
  readonly #name: string;
  readonly #encoder: Encoder;
  readonly #chain: ModuleChain;
  readonly #prompts: PromptTable;
  readonly #normalize: NormalizeMode;

  constructor(parts: EmbeddingParts) {
    this.#name = parts.name;
    this.family = parts.family;
    this.dim = parts.chain.outputSize;
    this.maxLength = parts.maxLength;
    this.vocabSize = parts.encoder.vocabSize;
    this.pooling = parts.chain.pooling.modes.join("+");
    this.#normalize = parts.normalize ?? (parts.chain.endsNormalized ? L2 : UNNORMALIZED);
    this.normalization = normalizationName(this.#normalize);
    this.promptNames = Object.keys(parts.prompts.prompts);
    this.storedDtype = parts.storedDtype;
    this.weightBytes = parts.weightBytes;
    this.tokenizer = parts.tokenizer;
    this.#encoder = parts.encoder;
    this.#chain = parts.chain;
    this.#prompts = parts.prompts;
  }

  /**
   * Cuts to `maxLength`; the specials around a text stay. Throws UnusableText for an input without tokens, or with one
   * outside of the vocabulary.
   */
  tokenize(input: EmbedInput, choice: PromptChoice): EmbedRow {
    const row = "ids" in input ? this.#verbatimRow(input.ids) : this.#textRow(input.text, choice);
    requireUsable(row, this.vocabSize);
    return row;
  }

  /** Builds the graph for rows of `tokenize` and starts computing it; returns at once. */
  start(rows: readonly EmbedRow[]): PendingVectors {
    const build = () => {
      const batch = raggedBatch(rows);
      const promptTokens = Int32Array.from(rows, (row) => row.promptTokens);
      const hidden = this.#encoder.forward(batch);
      return this.#chain.forward(hidden, { lengths: batch.lengths, promptTokens });
    };
    return pendingValues(
      build,
      (value) => `${this.#name} computed a vector that contains ${value}`,
    );
  }

  /**
   * One vector of `read` as a request wants it: cut to `dimensions`, then normalised unless that is off. Every mode
   * only scales, so this equals normalising before the cut as well.
   */
  finish(raw: Float32Array, options: FinishOptions): Float32Array<ArrayBuffer> {
    const cut = raw.subarray(0, options.dimensions ?? raw.length);
    return normalized(cut, options.normalize ?? this.#normalize);
  }

  #verbatimRow(ids: Int32Array): EmbedRow {
    const truncated = ids.length > this.maxLength;
    return { ids: truncated ? ids.slice(0, this.maxLength) : ids, promptTokens: 0, truncated };
  }

  #textRow(text: string, choice: PromptChoice): EmbedRow {
    const prompt = promptText(this.#prompts, choice);
    const { ids, typeIds, truncated } = this.tokenizer.encode(prompt + text, {
      maxLength: this.maxLength,
    });
    const pooled = Math.max(1, ids.length - this.#unpooledTokens(prompt));
    return { ids, typeIds, promptTokens: ids.length - pooled, truncated };
  }

  /** Tokens of the prompt alone, the specials before it included. */
  #unpooledTokens(prompt: string): number {
    if (prompt === "" || this.#chain.pooling.includePrompt) return 0;
    return this.tokenizer.encode(prompt).ids.length - this.tokenizer.singleSuffix.length;
  }
}

function normalizationName(mode: NormalizeMode): string {
  if (mode === UNNORMALIZED) return "none";
  return mode === L2 ? "l2" : String(mode);
}
