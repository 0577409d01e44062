import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { attention } from "./attention.ts";
import { linear } from "./linear.ts";
import type { RowLayout } from "./row-layout.ts";

export interface DisentangledShape {
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
export interface DisentangledRows {
  readonly layout: RowLayout;
  /** [1, 1, width, width] int32, the row of the table for a query and a key of a block. */
  rowOfPair(width: number): Tensor;
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
  const square = { inputs: width, outputs: width, bias: true };
  const [query, key, value] = [names.query, names.key, names.value].map((name) =>
    linear(weights, name, square),
  );
  const headDim = width / heads;
  const scale = 1 / Math.sqrt(KINDS_OF_SCORES * headDim);
  // [2 * span, width] -> [1, heads, 2 * span, headDim]
  const ofHeads = (rows: Tensor) =>
    mx.transpose(mx.reshape(rows, [1, -1, heads, headDim]), [0, 2, 1, 3]);
  let projected: { readonly keys: Tensor; readonly queries: Tensor } | undefined;
  return (x, { layout, rowOfPair }) => {
    projected ??= mx.keep({
      keys: ofHeads(key!(relative())),
      queries: ofHeads(query!(relative())),
    });
    const { keys: distanceKeys, queries: distanceQueries } = projected;
    const scoreBias = (queries: Tensor, keys: Tensor) => {
      const row = rowOfPair(queries.shape[2]!);
      // [b, heads, width, 2 * span] by query -> [b, heads, width, width]
      const contentToDistance = mx.takeAlongAxis(product(queries, distanceKeys), row, 3);
      // [b, heads, 2 * span, width] by key -> [b, heads, width, width]
      const distanceToContent = mx.takeAlongAxis(product(distanceQueries, keys), row, 2);
      const sum = mx.add(contentToDistance, distanceToContent);
      return mx.multiply(sum, mx.scalar(scale, sum.dtype));
    };
    const shape = { heads, kvHeads: heads, scale, mask: { kind: "full" }, scoreBias } as const;
    return attention(layout, shape)(query!(x), key!(x), value!(x));
  };
}

/** a·bᵀ of the last two axes. */
function product(a: Tensor, b: Tensor): Tensor {
  return mx.matmul(a, mx.transpose(b, [0, 1, 3, 2]));
}

/** Build it once per forward: its tensors live in the scope of their first use. */
export function disentangledRows(layout: RowLayout, distances: DistanceBuckets): DisentangledRows {
  const made = new Map<number, Tensor>();
  return {
    layout,
    rowOfPair(width) {
      const row = made.get(width) ?? rowsOfPairs(width, distances);
      made.set(width, row);
      return row;
    },
  };
}

function rowsOfPairs(width: number, distances: DistanceBuckets): Tensor {
  const rowOf = Int32Array.from({ length: 2 * width - 1 }, (_, i) =>
    rowOfDistance(i - width + 1, distances),
  );
  const rows = new Int32Array(width * width);
  for (let query = 0; query < width; query++) {
    for (let key = 0; key < width; key++)
      rows[query * width + key] = rowOf[query - key + width - 1]!;
  }
  return mx.fromInt32(rows, [1, 1, width, width]);
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
