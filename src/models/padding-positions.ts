import type { RaggedBatch } from "../nn/ragged.ts";

/**
 * [N]: padId plus the running count of the row's other tokens. A padding token written out in a text gets padId
 * itself and does not count.
 */
export function positionsAfterPadding(batch: RaggedBatch, padId: number): Int32Array {
  let counted = 0;
  return batch.ids.map((id, token) => {
    if (batch.positions[token] === 0) counted = 0;
    return id === padId ? padId : padId + ++counted;
  });
}
