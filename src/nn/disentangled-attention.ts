import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { attention } from "./attention.ts";
import { linear } from "./linear.ts";
import type { RowLayout } from "./row-layout.ts";

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
  /** The rows of the table for all distances in a block of this width. */
  tableRows(width: number): DistanceRows;
}

/** Both [2 * width - 1] int32. */
interface DistanceRows {
  /** For distances from 1 - width to width - 1. */
  readonly rising: Tensor;
  /** For distances from width - 1 to 1 - width. */
  readonly falling: Tensor;
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
  return (x, { layout, tableRows }) => {
    projected ??= mx.keep({
      keys: ofHeads(key!(relative())),
      queries: ofHeads(query!(relative())),
    });
    const { keys: distanceKeys, queries: distanceQueries } = projected;
    const scoreBias = (queries: Tensor, keys: Tensor) => {
      const { rising, falling } = tableRows(queries.shape[2]!);
      // [b, heads, queries, keys]: from one key to the next the distance falls
      const contentToDistance = scoresOfPairs(queries, mx.take(distanceKeys, falling, 2));
      // [b, heads, keys, queries]: from one query to the next it rises
      const distanceToContent = scoresOfPairs(keys, mx.take(distanceQueries, rising, 2));
      const sum = mx.add(contentToDistance, mx.transpose(distanceToContent, [0, 1, 3, 2]));
      return mx.multiply(sum, mx.scalar(scale, sum.dtype));
    };
    const shape = { heads, kvHeads: heads, scale, mask: { kind: "full" }, scoreBias } as const;
    return attention(layout, shape)(query!(x), key!(x), value!(x));
  };
}

/**
 * Scores of each token of a block with the distances to all of them: tokens [b, heads, width, headDim] and distances
 * [1, heads, 2 * width - 1, headDim], of which the last token meets the first ones -> [b, heads, width, width].
 */
function scoresOfPairs(tokens: Tensor, distances: Tensor): Tensor {
  const [b, heads, width] = [tokens.shape[0]!, tokens.shape[1]!, tokens.shape[2]!];
  const columns = 2 * width - 1;
  const scores = mx.matmul(tokens, mx.transpose(distances, [0, 1, 3, 2]));
  if (width === 1) return scores;
  // Token i has the columns from width - 1 - i on: in the numbers of all tokens end to end, each begins `columns - 1`
  // behind the one before it.
  const flat = mx.reshape(scores, [b, heads, width * columns]);
  const end = width - 1 + width * (columns - 1);
  const shifted = mx.slice(flat, [0, 0, width - 1], [b, heads, end]);
  // [b, heads, width * (columns - 1)] -> [b, heads, width, columns - 1] -> [b, heads, width, width]
  const perToken = mx.reshape(shifted, [b, heads, width, columns - 1]);
  return mx.slice(perToken, [0, 0, 0, 0], [b, heads, width, width]);
}

/** Build it once per forward: its tensors live in the scope of their first use. */
export function disentangledRows(layout: RowLayout, buckets: DistanceBuckets): DisentangledRows {
  const made = new Map<number, DistanceRows>();
  return {
    layout,
    tableRows(width) {
      const rows = made.get(width) ?? distanceRows(width, buckets);
      made.set(width, rows);
      return rows;
    },
  };
}

function distanceRows(width: number, buckets: DistanceBuckets): DistanceRows {
  const length = 2 * width - 1;
  const rising = Int32Array.from({ length }, (_, i) => rowOfDistance(i - width + 1, buckets));
  return {
    rising: mx.fromInt32(rising, [length]),
    falling: mx.fromInt32(rising.toReversed(), [length]),
  };
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
