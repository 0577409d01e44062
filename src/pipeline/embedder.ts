import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Encoder } from "../nn/encoder.ts";
import { raggedBatch } from "../nn/ragged.ts";
import { rowStarts } from "../nn/row-layout.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { CountedRow } from "./counted-row.ts";
import type { LateInteraction } from "./late-interaction.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { ModuleChain } from "./modules.ts";
import { L2, normalized, UNNORMALIZED, type NormalizeMode } from "./normalize.ts";
import { pendingValues, type PendingValues } from "./pending-values.ts";
import { type PromptChoice, promptText, type PromptTable, sideOf } from "./prompts.ts";
import { requireUsable } from "./unusable-text.ts";

/** Text for the tokenizer, or token ids that are used verbatim (no specials, no prompt). */
type EmbedInput = { readonly text: string } | { readonly ids: Int32Array };

/** One tokenized input. */
export interface EmbedRow extends CountedRow {
  /** Leading tokens that pooling leaves out; 0 where the checkpoint pools its prompts too. */
  readonly promptTokens: number;
  /** The tokens that give a vector, in order, where each gives one; absent: all. */
  readonly kept?: Int32Array | undefined;
  /** Vectors that it gives. */
  readonly outputs: number;
}

/** [outputs of all rows, dim] vectors that are being computed. */
type PendingVectors = PendingValues;

interface FinishOptions {
  /** Keep this many leading components. 1…dim. */
  readonly dimensions?: number | undefined;
  /** Absent: the server's setting, else what the checkpoint's modules do. */
  readonly normalize?: NormalizeMode | undefined;
}

/** What an EmbeddingModel is put together from. */
interface EmbeddingParts {
  /** What error messages call it. */
  readonly name: string;
  readonly facts: ModelFacts;
  readonly encoder: Encoder;
  readonly chain: ModuleChain;
  readonly tokenizer: Tokenizer;
  readonly prompts: PromptTable;
  /** How texts become rows where each token gives a vector; with it, the chain has no pooling. */
  readonly lateInteraction?: LateInteraction | undefined;
  /** Overrides what the checkpoint's modules do. */
  readonly normalize?: NormalizeMode | undefined;
}

/** Texts in, vectors out: prompt, tokenizer, network, pooling, Dense and normalisation of one checkpoint. */
export class EmbeddingModel {
  readonly facts: ModelFacts;
  /** Width of the vectors. */
  readonly dim: number;
  /** Modes in the order in which they are concatenated, e.g. `mean` or `cls+mean`; `none`: a vector per token. */
  readonly pooling: string;
  /** What happens to a vector unless the request says otherwise: `l2`, `none` or the number of the mode. */
  readonly normalization: string;
  /** A text gives a vector per token instead of one. */
  readonly multiVector: boolean;
  /** What the checkpoint's modules do to a vector in the end. */
  readonly ownNormalize: NormalizeMode;
  /** Names in the checkpoint's own prompt table. */
  readonly promptNames: readonly string[];
  readonly tokenizer: Tokenizer;
  readonly #name: string;
  readonly #encoder: Encoder;
  readonly #chain: ModuleChain;
  readonly #prompts: PromptTable;
  readonly #lateInteraction: LateInteraction | undefined;
  readonly #normalize: NormalizeMode;

  constructor(parts: EmbeddingParts) {
    this.#name = parts.name;
    this.facts = parts.facts;
    this.dim = parts.chain.outputSize;
    this.pooling = parts.chain.pooling?.modes.join("+") ?? "none";
    this.multiVector = parts.lateInteraction !== undefined;
    this.ownNormalize = parts.chain.endsNormalized ? L2 : UNNORMALIZED;
    this.#normalize = parts.normalize ?? this.ownNormalize;
    this.normalization = normalizationName(this.#normalize);
    this.promptNames = Object.keys(parts.prompts.prompts);
    this.tokenizer = parts.tokenizer;
    this.#encoder = parts.encoder;
    this.#chain = parts.chain;
    this.#prompts = parts.prompts;
    this.#lateInteraction = parts.lateInteraction;
  }

  /**
   * Cuts to `maxLength`; the specials around a text stay. Throws UnusableText for an input without tokens, or with one
   * outside of the vocabulary.
   */
  tokenize(input: EmbedInput, choice: PromptChoice): EmbedRow {
    const row = "ids" in input ? this.#verbatimRow(input.ids) : this.#textRow(input.text, choice);
    requireUsable(row, this.facts.vocabSize);
    return row;
  }

  /** Builds the graph for rows of `tokenize` and starts computing it; returns at once. */
  start(rows: readonly EmbedRow[]): PendingVectors {
    const build = () => {
      const batch = raggedBatch(rows);
      const promptTokens = Int32Array.from(rows, (row) => row.promptTokens);
      const hidden = this.#encoder.forward(batch);
      return mx.asPhase("pool", () => {
        const vectors = this.#chain.forward(hidden, { lengths: batch.lengths, promptTokens });
        return rows.some((row) => row.kept) ? keptVectors(vectors, rows) : vectors;
      });
    };
    return pendingValues(
      build,
      (value) => `${this.#name} computed a vector that contains ${value}`,
    );
  }

  /**
   * Vectors of `read`, [n, dim] -> [n, dimensions], as a request wants them: each cut to `dimensions`, then normalised
   * unless that is off. Every mode only scales, so this equals normalising before the cut as well.
   */
  finish(raw: Float32Array, options: FinishOptions): Float32Array<ArrayBuffer> {
    const { dimensions = this.dim, normalize = this.#normalize } = options;
    if (raw.length === this.dim) return normalized(raw.subarray(0, dimensions), normalize);
    const count = raw.length / this.dim;
    const finished = new Float32Array(count * dimensions);
    for (let i = 0; i < count; i++) {
      const vector = raw.subarray(i * this.dim, i * this.dim + dimensions);
      finished.set(normalized(vector, normalize), i * dimensions);
    }
    return finished;
  }

  #verbatimRow(all: Int32Array): EmbedRow {
    const truncated = all.length > this.facts.maxLength;
    const ids = truncated ? all.slice(0, this.facts.maxLength) : all;
    return {
      ...{ ids, tokens: ids.length, truncated, limit: this.facts.maxLength, promptTokens: 0 },
      outputs: this.multiVector ? ids.length : 1,
    };
  }

  #textRow(text: string, choice: PromptChoice): EmbedRow {
    const prompt = promptText(this.#prompts, choice);
    if (this.#lateInteraction) {
      const side = sideOf(this.#prompts, choice);
      const row = this.#lateInteraction.row(prompt + text, side);
      const limit = this.#lateInteraction.limits[side ?? "document"];
      const outputs = row.kept?.length ?? row.ids.length;
      return { ...row, promptTokens: 0, limit, outputs };
    }
    const row = this.tokenizer.encode(prompt + text, { maxLength: this.facts.maxLength });
    const tokens = row.ids.length;
    const pooled = Math.max(1, tokens - this.#unpooledTokens(prompt));
    return {
      ...row,
      tokens,
      promptTokens: tokens - pooled,
      limit: this.facts.maxLength,
      outputs: 1,
    };
  }

  /** Tokens of the prompt alone, the specials before it included. */
  #unpooledTokens(prompt: string): number {
    if (prompt === "" || this.#chain.pooling?.includePrompt) return 0;
    return this.tokenizer.encode(prompt).ids.length - this.tokenizer.singleSuffix.length;
  }
}

/** [N, dim] -> [outputs of all rows, dim] */
function keptVectors(vectors: Tensor, rows: readonly EmbedRow[]): Tensor {
  const starts = rowStarts(Int32Array.from(rows, ({ ids }) => ids.length));
  const kept = rows.flatMap((row, i) =>
    Array.from(row.kept ?? row.ids.keys(), (token) => starts[i]! + token),
  );
  return mx.take(vectors, mx.fromInt32(Int32Array.from(kept), [kept.length]), 0);
}

function normalizationName(mode: NormalizeMode): string {
  if (mode === UNNORMALIZED) return "none";
  return mode === L2 ? "l2" : String(mode);
}
