import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { CountedRow } from "./counted-row.ts";
import type { ModelFacts } from "./model-facts.ts";
import type { PendingValues } from "./pending-values.ts";

/** One (query, document) pair as the network sees it. */
export interface PairRow extends CountedRow {
  /** Rows that share a beginning carry the same object, and only such rows may run in one batch. */
  readonly prefix?: object | undefined;
}

/** The query of one request, prepared once for all of its documents. */
export interface PreparedQuery {
  /** Throws UnusableText where query and document have no tokens, or the document has one outside of the vocabulary. */
  pair(document: string): PairRow;
  /** Frees what the query's rows share. Must be called once no row of it is going to run. */
  release(): void;
}

/** Logits that are being computed: [B] f32, one per row. */
export type PendingLogits = PendingValues;

/** A model that judges how well a document answers a query; the score of a pair is sigmoid(logit). */
export interface Reranker {
  readonly facts: ModelFacts;
  /** Whether `instruction` means something to it. */
  readonly takesInstruction: boolean;
  readonly tokenizer: Tokenizer;
  /** Throws UnusableText where the query has a token outside of the vocabulary, whatever the document. */
  prepare(query: string, instruction?: string): PreparedQuery;
  /** Builds the graph for rows of `pair` and starts computing it. */
  start(rows: readonly PairRow[]): PendingLogits;
}
