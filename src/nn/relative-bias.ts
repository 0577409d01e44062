import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";

/** How distances share rows of the table. */
interface RelativeBuckets {
  /** Half of them for keys before the query, half for those behind it. */
  readonly buckets: number;
  /** From here on all distances share one bucket. */
  readonly maxDistance: number;
}

interface RelativeBiasShape extends RelativeBuckets {
  /** Rows of the table, at least `buckets`. */
  readonly rows: number;
  readonly heads: number;
}

/** For rows of up to `span` tokens: [heads, 2 * span - 1] f32, the column of a key and a query as in `AttentionShape`. */
export type RelativeBias = (span: number) => Tensor;

/** A bias of each head by the distance from query to key, from `<name>.weight` [rows, heads]. */
export function relativeBias(
  weights: Weights,
  name: string,
  { rows, heads, ...buckets }: RelativeBiasShape,
): RelativeBias {
  const table = weights.take(`${name}.weight`, [rows, heads]);
  return (span) => {
    const offsets = Int32Array.from({ length: 2 * span - 1 }, (_, column) => column - span + 1);
    const bucketOfColumn = offsets.map((offset) => bucketOf(offset, buckets));
    // [2 * span - 1, heads] -> [heads, 2 * span - 1]
    const bias = mx.transpose(mx.take(table, mx.fromInt32(bucketOfColumn, [offsets.length]), 0));
    return mx.astype(bias, "float32");
  };
}

/**
 * The bucket of a key `offset` tokens behind the query (Raffel et al. 2020, section 2.1): the first quarter of all
 * buckets holds one distance each, the second one distances that grow by a constant factor up to `maxDistance`, and
 * both once more for keys behind the query. Rounds to f32 as the reference implementations.
 */
export function bucketOf(offset: number, { buckets, maxDistance }: RelativeBuckets): number {
  const half = Math.floor(buckets / 2);
  const exact = Math.floor(half / 2);
  const first = offset > 0 ? half : 0;
  const distance = Math.abs(offset);
  if (distance < exact) return first + distance;
  const growth = Math.fround(Math.log(Math.fround(distance / exact)));
  const share = Math.fround(growth / Math.fround(Math.log(maxDistance / exact)));
  const step = Math.trunc(Math.fround(share * (half - exact)));
  return first + Math.min(exact + step, half - 1);
}
