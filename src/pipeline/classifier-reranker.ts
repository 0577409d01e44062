import type { WeightFacts } from "../checkpoint/weights.ts";
import { raggedBatch } from "../nn/ragged.ts";
import type { SequenceClassifier } from "../nn/sequence-classifier.ts";
import type { Encoding, Tokenizer } from "../tokenizer/tokenizer.ts";
import { pendingLogits } from "./pending-logits.ts";
import type { PairRow, PendingLogits, PreparedQuery, Reranker } from "./reranker.ts";
import { requireUsable } from "./unusable-text.ts";

/** What a ClassifierReranker is put together from. */
interface ClassifierParts extends WeightFacts {
  /** What error messages call it. */
  readonly name: string;
  readonly family: string;
  readonly classifier: SequenceClassifier;
  readonly tokenizer: Tokenizer;
  /** Longest pair in tokens, specials included. */
  readonly maxLength: number;
}

/** A cross-encoder: query and document in one row, and a head that gives the row one logit. */
export class ClassifierReranker implements Reranker {
  readonly family: string;
  readonly maxLength: number;
  readonly vocabSize: number;
  readonly storedDtype: string;
  readonly loadNotes: readonly string[];
  readonly takesInstruction = false;
  readonly tokenizer: Tokenizer;
  readonly #name: string;
  readonly #classifier: SequenceClassifier;

  constructor(parts: ClassifierParts) {
    this.#name = parts.name;
    this.family = parts.family;
    this.maxLength = parts.maxLength;
    this.vocabSize = parts.classifier.vocabSize;
    this.storedDtype = parts.storedDtype;
    this.loadNotes = parts.loadNotes;
    this.tokenizer = parts.tokenizer;
    this.#classifier = parts.classifier;
  }

  prepare(query: string): PreparedQuery {
    const pairWith = this.tokenizer.pairsWith(query, this.maxLength);
    return {
      pair: (document) => this.#row(pairWith(document)),
      release() {
        // The rows of a query share nothing.
      },
    };
  }

  start(rows: readonly PairRow[]): PendingLogits {
    return pendingLogits(this.#name, () => this.#classifier.logits(raggedBatch(rows)));
  }

  #row(encoding: Encoding): PairRow {
    requireUsable(encoding, this.vocabSize);
    return { ...encoding, tokens: encoding.ids.length, limit: this.maxLength };
  }
}
