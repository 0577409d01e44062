import { raggedBatch } from "../nn/ragged.ts";
import type { SequenceClassifier } from "../nn/sequence-classifier.ts";
import type { Encoding, Tokenizer } from "../tokenizer/tokenizer.ts";
import type { ModelFacts } from "./model-facts.ts";
import { pendingLogits } from "./pending-logits.ts";
import type { PairRow, PendingLogits, PreparedQuery, Reranker } from "./reranker.ts";
import { requireInVocabulary, requireUsable } from "./unusable-text.ts";

/** What a ClassifierReranker is put together from. */
interface ClassifierParts {
  /** What error messages call it. */
  readonly name: string;
  readonly facts: ModelFacts;
  readonly classifier: SequenceClassifier;
  readonly tokenizer: Tokenizer;
}

/** A cross-encoder: query and document in one row, and a head that gives the row one logit. */
export class ClassifierReranker implements Reranker {
  readonly facts: ModelFacts;
  readonly takesInstruction = false;
  readonly tokenizer: Tokenizer;
  readonly #name: string;
  readonly #classifier: SequenceClassifier;

  constructor({ name, facts, classifier, tokenizer }: ClassifierParts) {
    this.facts = facts;
    this.tokenizer = tokenizer;
    this.#name = name;
    this.#classifier = classifier;
  }

  prepare(query: string): PreparedQuery {
    const pairs = this.tokenizer.pairsWith(query, this.facts.maxLength);
    requireInVocabulary(pairs.first, this.facts.vocabSize);
    return {
      pair: (document) => this.#row(pairs.with(document)),
      release() {
        // The rows of a query share nothing.
      },
    };
  }

  start(rows: readonly PairRow[]): PendingLogits {
    return pendingLogits(this.#name, () => this.#classifier.logits(raggedBatch(rows)));
  }

  #row(encoding: Encoding): PairRow {
    requireUsable(encoding, this.facts.vocabSize);
    return { ...encoding, tokens: encoding.ids.length, limit: this.facts.maxLength };
  }
}
