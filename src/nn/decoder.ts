import type { Tensor } from "../../ffi/index.ts";
import type { Encoder } from "./encoder.ts";
import type { KvCache } from "./kv-cache.ts";
import type { RaggedBatch } from "./ragged.ts";

/** A causal network: a token depends on nothing that follows it, so beginnings of texts can be run ahead. */
export interface Decoder extends Encoder {
  /**
   * [N, hiddenSize] f32, lazily evaluated; the caller's scope owns it. With `past` every row of the batch continues
   * the tokens in it; positions in the batch count from 0 all the same.
   */
  forward(batch: RaggedBatch, past?: KvCache): Tensor;
  /**
   * The cache of `past`, if any, and `ids` after it, lazily evaluated. The caller frees it; `past` stays as it is.
   */
  prefill(ids: Int32Array, past?: KvCache): KvCache;
}
