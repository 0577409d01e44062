import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { PendingLogits } from "./reranker.ts";

/**
 * Starts computing the logits that `build` makes a graph of, [B] f32, and returns at once. `name` is what error
 * messages call the model.
 */
export function pendingLogits(name: string, build: () => Tensor): PendingLogits {
  const logits = mx.scope(() => {
    const out = build();
    mx.asyncEvaluate(out);
    return mx.keep(out);
  });
  return {
    read() {
      try {
        const values = logits.toFloat32();
        const place = values.findIndex((value) => !Number.isFinite(value));
        if (place === -1) return values;
        throw new Error(`${name} computed a logit that is ${values[place]}`);
      } finally {
        logits.free();
      }
    },
    drop: () => logits.free(),
  };
}
