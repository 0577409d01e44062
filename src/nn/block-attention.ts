import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Attention, AttentionShape } from "./attention.ts";
import { distanceScores } from "./distance-scores.ts";
import { type Reach, reachOf } from "./key-range.ts";
import type { Bucket, RowLayout } from "./row-layout.ts";

/** Where masks limit what queries see, so many are taken at a time: scores of long rows then need little memory. */
const QUERIES_PER_PART = 512;

/** [b, heads or kvHeads, width, headDim] */
interface SplitHeads {
  readonly queries: Tensor;
  readonly keys: Tensor;
  readonly values: Tensor;
}

/** Cells `first` up to `end`, exclusive. */
interface Cells {
  readonly first: number;
  readonly end: number;
}

/** Some queries of a block, with the keys that any of them sees. */
interface Part {
  readonly queries: Cells;
  readonly keys: Cells;
  readonly mask: mx.AttentionMask;
}

/** The queries of a part and its keys, both counted from the first key of the past. */
interface Places {
  readonly queries: Cells;
  readonly keys: Cells;
  /** Keys of the past. */
  readonly past: number;
}

/** By mlx's own operations, on rows of similar length as dense blocks. */
export function blockAttention(layout: RowLayout, shape: AttentionShape): Attention {
  const { heads, kvHeads, scale, distances } = shape;
  let parts: readonly Part[][] | undefined;
  return (q, k, v, past) => {
    const pastLength = past?.keys.shape[0] ?? 0;
    parts ??= layout.buckets.map((bucket) => partsOf(bucket, shape, pastLength, q.dtype));
    const keys = layout.blocks(k);
    const values = layout.blocks(v);
    const attended = layout.blocks(q).map((queries, i) => {
      const split: SplitHeads = {
        queries: splitHeads(queries, heads),
        keys: splitHeads(continued(past?.keys, keys[i]!), kvHeads),
        values: splitHeads(continued(past?.values, values[i]!), kvHeads),
      };
      const outputs = parts![i]!.map((part) => {
        const seen = cut(split, part);
        const mask = distances ? withDistances(part.mask, distances, seen, scale) : part.mask;
        return mx.scaledDotProductAttention(seen.queries, seen.keys, seen.values, scale, mask);
      });
      return joinHeads(outputs.length === 1 ? outputs[0]! : mx.concatenate(outputs, 2));
    });
    return layout.tokens(attended);
  };
}

function partsOf(bucket: Bucket, shape: AttentionShape, past: number, dtype: mx.Dtype): Part[] {
  const reach = reachOf(shape.mask);
  const total = past + bucket.width;
  const step = reach.after === Infinity ? bucket.width : QUERIES_PER_PART;
  const parts: Part[] = [];
  for (let first = 0; first < bucket.width; first += step) {
    const queries = { first, end: Math.min(first + step, bucket.width) };
    const keys = {
      first: Math.max(0, past + first - reach.before),
      end: Math.min(total, past + queries.end + reach.after),
    };
    const places = {
      ...{ keys, past },
      queries: { first: past + first, end: past + queries.end },
    };
    parts.push({ queries, keys, mask: partMask(bucket, shape, places, dtype) });
  }
  return parts;
}

function partMask(
  bucket: Bucket,
  { mask, relativeBias }: AttentionShape,
  places: Places,
  dtype: mx.Dtype,
): mx.AttentionMask {
  const { queries, keys } = places;
  const reach = reachOf(mask);
  const cutBefore = queries.end - 1 - reach.before > keys.first;
  const rowsEnd = bucket.attended.some((count, row) =>
    // Where no query looks ahead, the cells behind a row are hidden from all of its tokens anyway.
    reach.after === 0 ? count < bucket.lengths[row]! : count < bucket.width,
  );
  if (reach.after === 0 && !cutBefore && !rowsEnd && !relativeBias) return { causal: true };
  const visible = visibleKeys(bucket, reach, places, { cutBefore, rowsEnd });
  if (!relativeBias) return { mask: visible };
  return biased(mx.astype(biasOf(relativeBias, places), dtype), visible);
}

/**
 * Bool, broadcasts to [b, 1, queries, keys]; undefined where all is seen. Every query sees at least one key, cells
 * behind the end of a row too, so that a softmax never runs over nothing.
 */
function visibleKeys(
  bucket: Bucket,
  reach: Reach,
  { queries, keys, past }: Places,
  { cutBefore, rowsEnd }: { readonly cutBefore: boolean; readonly rowsEnd: boolean },
): Tensor | undefined {
  const query = numbers(queries, [1, 1, -1, 1]);
  const key = numbers(keys, [1, 1, 1, -1]);
  const conditions: Tensor[] = [];
  if (cutBefore) {
    const first = mx.subtract(query, mx.scalar(reach.before, "int32"));
    conditions.push(mx.greaterEqual(key, first));
  }
  if (queries.first + reach.after < keys.end - 1) {
    conditions.push(mx.lessEqual(key, mx.add(query, mx.scalar(reach.after, "int32"))));
  }
  if (rowsEnd) {
    const isKey = mx.less(key, perRow(bucket.attended, past));
    const isPadding = mx.greaterEqual(query, perRow(bucket.lengths, past));
    conditions.push(conditions.length === 0 ? isKey : mx.logicalOr(isKey, isPadding));
  }
  const [first, ...others] = conditions;
  return first && others.reduce(mx.logicalAnd, first);
}

/** [1, heads, queries, keys] from [heads, 2 * span - 1]. */
function biasOf(table: Tensor, { queries, keys }: Places): Tensor {
  const span = (table.shape[1]! + 1) / 2;
  if (Math.max(keys.end, queries.end) > span) {
    throw new RangeError(`the bias is for rows of ${span} tokens, not of ${keys.end}`);
  }
  // [queries, 1] and [keys] -> [queries, keys]
  const shifted = numbers({ first: keys.first + span - 1, end: keys.end + span - 1 }, [-1]);
  const column = mx.subtract(shifted, numbers(queries, [-1, 1]));
  // [heads, columns] -> [heads, queries, keys] -> [1, heads, queries, keys]
  return mx.expandDims(mx.take(table, column, 1), 0);
}

function biased(bias: Tensor, visible: Tensor | undefined): mx.AttentionMask {
  if (!visible) return { mask: bias };
  return { mask: mx.where(visible, bias, mx.scalar(-Infinity, bias.dtype)) };
}

function withDistances(
  { mask: visible }: mx.AttentionMask,
  distances: mx.Distances,
  { queries, keys }: SplitHeads,
  scale: number,
): mx.AttentionMask {
  const scores = distanceScores(distances, queries, keys);
  return biased(mx.multiply(scores, mx.scalar(scale, scores.dtype)), visible);
}

function numbers({ first, end }: Cells, shape: readonly number[]): Tensor {
  const values = Int32Array.from({ length: end - first }, (_, i) => first + i);
  return mx.fromInt32(
    values,
    shape.map((size) => (size === -1 ? values.length : size)),
  );
}

/** [b] -> [b, 1, 1, 1] */
function perRow(counts: Int32Array, past: number): Tensor {
  return mx.fromInt32(
    counts.map((count) => past + count),
    [counts.length, 1, 1, 1],
  );
}

function cut({ queries, keys, values }: SplitHeads, part: Part): SplitHeads {
  return {
    queries: cells(queries, part.queries),
    keys: cells(keys, part.keys),
    values: cells(values, part.keys),
  };
}

/** [b, heads, width, headDim] -> [b, heads, end - first, headDim] */
function cells(x: Tensor, { first, end }: Cells): Tensor {
  const [b, heads, width, headDim] = [x.shape[0]!, x.shape[1]!, x.shape[2]!, x.shape[3]!];
  if (first === 0 && end === width) return x;
  return mx.slice(x, [0, 0, first, 0], [b, heads, end, headDim]);
}

/** past [P, W] in front of each row of own [b, width, W] -> [b, P + width, W] */
function continued(past: Tensor | undefined, own: Tensor): Tensor {
  if (!past) return own;
  const before = mx.broadcastTo(past, [own.shape[0]!, past.shape[0]!, past.shape[1]!]);
  return mx.concatenate([before, own], 1);
}

function joinHeads(x: Tensor): Tensor {
  const [b, heads, width, headDim] = [x.shape[0]!, x.shape[1]!, x.shape[2]!, x.shape[3]!];
  // [b, heads, width, headDim] -> [b, width, heads * headDim]
  return mx.reshape(mx.transpose(x, [0, 2, 1, 3]), [b, width, heads * headDim]);
}

function splitHeads(block: Tensor, heads: number): Tensor {
  const [b, width, features] = [block.shape[0]!, block.shape[1]!, block.shape[2]!];
  // [b, width, heads * headDim] -> [b, heads, width, headDim]
  return mx.transpose(mx.reshape(block, [b, width, heads, features / heads]), [0, 2, 1, 3]);
}
