import * as mx from "../../ffi/index.ts";
import type { AttentionRows, Distances, Tensor } from "../../ffi/index.ts";
import { blockAttention } from "./block-attention.ts";
import { kernelsOn } from "./kernels.ts";
import type { KeysValues } from "./kv-cache.ts";
import { reachOf, requireVisibleKeys } from "./key-range.ts";
import type { Mask } from "./ragged.ts";
import type { RowLayout } from "./row-layout.ts";

export interface AttentionShape {
  readonly heads: number;
  /** Fewer than `heads`: each key/value head serves heads / kvHeads query heads. */
  readonly kvHeads: number;
  /** Factor on q·k, usually 1/sqrt(headDim). */
  readonly scale: number;
  readonly mask: Mask;
  /**
   * [heads, 2 * span - 1] f32, added to the scaled scores of all layers: column key - query + span - 1. No row may be
   * longer than `span` tokens.
   */
  readonly relativeBias?: Tensor | undefined;
  /**
   * Scores with distances (He et al. 2021, equation 4), of this layer only. Needs as many key/value heads as heads and
   * a mask that shows all keys.
   */
  readonly distances?: Distances | undefined;
}

/**
 * q [N, heads * headDim], k and v [N, kvHeads * headDim] -> [N, heads * headDim]. With `past`, every row continues
 * the tokens in it, the same number of them in each layer: only for causal masks.
 */
export type Attention = (q: Tensor, k: Tensor, v: Tensor, past?: KeysValues) => Tensor;

/** Attention, and what the CPU kernels must know of the rows, for blocks that contain it. */
export interface RowAttention extends Attention {
  (...args: Parameters<Attention>): Tensor;
  /** For queries [N, width]; undefined where the kernels do not know this kind of attention. */
  kernelRows(width: number): AttentionRows | undefined;
}

/**
 * Attention within each row of a ragged batch (Vaswani et al. 2017, eq. 1). Build it once per forward and mask
 * kind, and use it in every layer: its masks live in the scope of the first use.
 */
export function attention(layout: RowLayout, shape: AttentionShape): RowAttention {
  requireVisibleKeys(layout, shape.mask);
  if (shape.distances && shape.mask.kind !== "full") {
    throw new RangeError("scores with distances need a mask that shows all keys");
  }
  const rows = rowsOf(layout, shape);
  const kernelRows = (width: number) =>
    width / shape.heads <= mx.MAX_KERNEL_HEAD_DIM ? rows : undefined;
  let onBlocks: Attention | undefined;
  const attend: Attention = (q, k, v, past) => {
    if (past && shape.mask.kind !== "causal") {
      throw new RangeError("only causal attention can continue a past");
    }
    const known = kernelRows(q.shape[1]!);
    const kernels = known && kernelsOn(q);
    if (kernels) return kernels.attention(q, k, v, { ...known, past });
    onBlocks ??= blockAttention(layout, shape);
    return onBlocks(q, k, v, past);
  };
  return Object.assign(attend, { kernelRows });
}

function rowsOf(layout: RowLayout, shape: AttentionShape): AttentionRows {
  const { mask, heads, kvHeads, scale, relativeBias, distances } = shape;
  const { before } = reachOf(mask);
  return {
    ...{ heads, kvHeads, scale, relativeBias, distances },
    ...{ lengths: layout.lengths, attended: layout.attended },
    causal: mask.kind === "causal",
    radius: before === Infinity ? undefined : before,
  };
}
