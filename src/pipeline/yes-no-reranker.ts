import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Decoder } from "../nn/decoder.ts";
import type { KvCache } from "../nn/kv-cache.ts";
import { raggedBatch } from "../nn/ragged.ts";
import { rowStarts } from "../nn/row-layout.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { ModelFacts } from "./model-facts.ts";
import { pendingLogits } from "./pending-logits.ts";
import type { PairRow, PendingLogits, PreparedQuery, Reranker } from "./reranker.ts";
import { YesNoPrompt } from "./yes-no-prompt.ts";

/** What a YesNoReranker is put together from. */
export interface YesNoParts {
  /** What error messages call it. */
  readonly name: string;
  readonly facts: ModelFacts;
  readonly decoder: Decoder;
  /** [2, hiddenSize] f32: the rows of the output head for yes and no. */
  readonly answerHead: Tensor;
  readonly tokenizer: Tokenizer;
  readonly prompt: YesNoPrompt;
}

/**
 * A language model that is asked whether a document meets a query. The logit of a pair is that of `yes` minus that of
 * `no` as the next token. What the pairs of a query begin with runs through the network once for all of them.
 */
export class YesNoReranker implements Reranker {
  readonly facts: ModelFacts;
  readonly takesInstruction = true;
  readonly tokenizer: Tokenizer;
  readonly #name: string;
  readonly #decoder: Decoder;
  /** [hiddenSize, 2] */
  readonly #answerHead: Tensor;
  readonly #prompt: YesNoPrompt;
  /** Of the prompt's beginning, which all queries share. */
  #beginning: KvCache | undefined;

  constructor(parts: YesNoParts) {
    this.facts = parts.facts;
    this.tokenizer = parts.tokenizer;
    this.#name = parts.name;
    this.#decoder = parts.decoder;
    this.#answerHead = mx.keep(mx.transpose(parts.answerHead));
    this.#prompt = parts.prompt;
  }

  /** A blank instruction stands for the prompt's own. */
  prepare(query: string, instruction?: string): PreparedQuery {
    const prompt = this.#prompt;
    const limit = this.facts.maxLength;
    const shared = prompt.shared(query, instruction);
    const prefix = new SharedPrefix(() => this.#prefill(shared.ids));
    return {
      pair(document) {
        const rest = prompt.document(document, shared);
        const ids = joined(rest.ids, prompt.end);
        const tokens = prompt.beginning.length + shared.ids.length + ids.length;
        const truncated = shared.truncated || rest.truncated;
        return { ids, tokens, limit, truncated, prefix };
      },
      release: () => prefix.release(),
    };
  }

  start(rows: readonly PairRow[]): PendingLogits {
    return pendingLogits(this.#name, () => {
      // [B, 2] · [2] -> [B]
      const difference = mx.fromFloat32(Float32Array.of(1, -1), [2]);
      return mx.matmul(this.answerLogits(rows), difference);
    });
  }

  /** [B, 2] f32, the logits of yes and no as the next token of each row; the caller's scope owns it. */
  answerLogits(rows: readonly PairRow[]): Tensor {
    const batch = raggedBatch(rows);
    const hidden = this.#decoder.forward(batch, sharedPast(rows));
    const last = rowStarts(batch.lengths).map((start, row) => start + batch.lengths[row]! - 1);
    // [N, H] -> [B, H] -> [B, 2]
    const states = mx.take(hidden, mx.fromInt32(last, [last.length]), 0);
    return mx.matmul(states, this.#answerHead);
  }

  #prefill(shared: Int32Array): KvCache {
    this.#beginning ??= this.#decoder.prefill(this.#prompt.beginning);
    return this.#decoder.prefill(shared, this.#beginning);
  }
}

/** The beginning that all pairs of one query share, run through the network when the first of them is. */
class SharedPrefix {
  #cache: KvCache | undefined;
  #released = false;
  readonly #prefill: () => KvCache;

  constructor(prefill: () => KvCache) {
    this.#prefill = prefill;
  }

  get cache(): KvCache {
    if (this.#released) throw new Error("a pair was started after its query was released");
    return (this.#cache ??= this.#prefill());
  }

  release(): void {
    this.#released = true;
    this.#cache?.free();
    this.#cache = undefined;
  }
}

function sharedPast(rows: readonly PairRow[]): KvCache {
  const prefix = rows[0]?.prefix;
  if (!(prefix instanceof SharedPrefix) || rows.some((row) => row.prefix !== prefix)) {
    throw new Error("the pairs of a batch must share the beginning of one query");
  }
  return prefix.cache;
}

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const all = new Int32Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}
