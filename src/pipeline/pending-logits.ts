import type { Tensor } from "../../ffi/index.ts";
import { pendingValues } from "./pending-values.ts";
import type { PendingLogits } from "./reranker.ts";

/**
 * Starts computing the logits that `build` makes a graph of, [B] f32, and returns at once. `name` is what error
 * messages call the model.
 */
export function pendingLogits(name: string, build: () => Tensor): PendingLogits {
  return pendingValues(build, (value) => `${name} computed a logit that is ${value}`);
}
