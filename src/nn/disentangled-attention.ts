import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { attention } from "./attention.ts";
import { longestRow } from "./ragged.ts";
import type { RowLayout } from "./row-layout.ts";
import { selfAttention } from "./self-attention.ts";

interface DisentangledShape {
  readonly width: number;
  readonly heads: number;
}

/** How distances between tokens share rows of the table of relative embeddings. */
export interface DistanceBuckets {
  /** Half of the rows of the table: as many for each direction. */
  readonly span: number;
  /** From here on all distances share one row. */
  readonly maxDistance: number;
}

/** [2 * span, width] what the projections of queries and keys are applied to for distances. */
export type RelativeEmbeddings = () => Tensor;

/** What all layers share in a forward. */
interface DisentangledRows {
  readonly layout: RowLayout;
  /** [2 * longest - 1] at key - query + longest - 1: the row of the table. */
  readonly tableRows: Int32Array;
}

/** x [N, width] -> [N, width]. */
export type DisentangledAttention = (x: Tensor, rows: DisentangledRows) => Tensor;

/** Attention scores between the contents of tokens, and between contents and distances. */
const KINDS_OF_SCORES = 3;

/**
 * Disentangled attention (He et al. 2021, equation 4) whose projections of queries and keys serve distances too: the
 * score of query i and key j is (qᵢ·kⱼ + qᵢ·K(d) + kⱼ·Q(d)) / sqrt(3 · headDim), K(d) and Q(d) the projected relative
 * embedding of the distance from j to i. They are the same in every forward and computed in the first.
 */
export function disentangledAttention(
  weights: Weights,
  names: { readonly query: string; readonly key: string; readonly value: string },
  { width, heads }: DisentangledShape,
  relative: RelativeEmbeddings,
): DisentangledAttention {
  const attend = selfAttention(weights, names, { inputs: width, outputs: width, bias: true });
  const scale = 1 / Math.sqrt((KINDS_OF_SCORES * width) / heads);
  let projected: { readonly keys: Tensor; readonly queries: Tensor } | undefined;
  return (x, { layout, tableRows }) => {
    if (!projected) {
      const [queries, keys] = attend.project(relative());
      // In memory of their own, without the values beside them.
      projected = mx.keep({ queries: mx.contiguous(queries), keys: mx.contiguous(keys) });
    }
    const distances = { ...projected, rows: tableRows };
    const shape = { heads, kvHeads: heads, scale, mask: { kind: "full" }, distances } as const;
    return attend(x, attention(layout, shape));
  };
}

/** Build it once per forward. */
export function disentangledRows(layout: RowLayout, buckets: DistanceBuckets): DisentangledRows {
  const longest = longestRow(layout);
  const tableRows = Int32Array.from({ length: 2 * longest - 1 }, (_, i) =>
    rowOfDistance(longest - 1 - i, buckets),
  );
  return { layout, tableRows };
}

/**
 * The row of the table for a query `distance` tokens behind the key: distances up to half of the span have a row each,
 * larger ones grow by a constant factor per row up to `maxDistance`. Rounds to f32 as the reference implementation.
 */
export function rowOfDistance(distance: number, { span, maxDistance }: DistanceBuckets): number {
  const row = span + bucketOf(distance, span, maxDistance);
  return Math.min(Math.max(row, 0), 2 * span - 1);
}

function bucketOf(distance: number, span: number, maxDistance: number): number {
  const exact = Math.floor(span / 2);
  const far = Math.abs(distance);
  if (far <= exact) return distance;
  const growth = Math.fround(Math.log(Math.fround(far / exact)));
  const range = Math.fround(Math.log(Math.fround((maxDistance - 1) / exact)));
  const steps = Math.ceil(Math.fround(Math.fround(growth / range) * (exact - 1)));
  return Math.sign(distance) * (exact + steps);
}
