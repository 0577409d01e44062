import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";

/** What one attention layer remembers of T tokens: both [T, kvHeads * headDim], keys turned to their positions. */
export interface KeysValues {
  readonly keys: Tensor;
  readonly values: Tensor;
}

/**
 * Keys and values of the first tokens of a text, per layer, so that what follows need not run them again. Never
 * changes; its owner frees it.
 */
export class KvCache {
  /** Tokens that it holds. */
  readonly length: number;
  /** One per layer. */
  readonly layers: readonly KeysValues[];

  /** Takes the tensors out of their scopes. */
  constructor(layers: readonly KeysValues[]) {
    this.layers = mx.keep(layers);
    this.length = layers[0]?.keys.shape[0] ?? 0;
  }

  free(): void {
    for (const { keys, values } of this.layers) {
      keys.free();
      values.free();
    }
  }
}

/** Those of `past` followed by `own`; a copy. */
export function appended(past: KeysValues, own: KeysValues): KeysValues {
  return {
    keys: mx.concatenate([past.keys, own.keys], 0),
    values: mx.concatenate([past.values, own.values], 0),
  };
}
