import * as mx from "../../ffi/index.ts";
import type { AttentionRows, Tensor } from "../../ffi/index.ts";
import { kernelsOn } from "./kernels.ts";
import type { KeysValues } from "./kv-cache.ts";
import type { Mask } from "./ragged.ts";
import type { Bucket, RowLayout } from "./row-layout.ts";

export interface AttentionShape {
  readonly heads: number;
  /** Fewer than `heads`: each key/value head serves heads / kvHeads query heads. */
  readonly kvHeads: number;
  /** Factor on q·k, usually 1/sqrt(headDim). */
  readonly scale: number;
  readonly mask: Mask;
}

/**
 * q [N, heads * headDim], k and v [N, kvHeads * headDim] -> [N, heads * headDim]. With `past`, every row continues
 * the tokens in it: only for causal masks.
 */
export type Attention = (q: Tensor, k: Tensor, v: Tensor, past?: KeysValues) => Tensor;

/** Attention, and what it knows of the rows, for blocks that contain it. */
export interface RowAttention extends Attention {
  (...args: Parameters<Attention>): Tensor;
  readonly rows: AttentionRows;
}

type BlockMask = { mask?: Tensor; causal?: boolean };

/** Causal attention takes this many queries at a time, so that scores of long rows need little memory. */
const CAUSAL_QUERIES = 512;

/**
 * Attention within each row of a ragged batch (Vaswani et al. 2017, eq. 1). Build it once per forward and mask
 * kind, and use it in every layer: its masks live in the scope of the first use.
 */
export function attention(layout: RowLayout, shape: AttentionShape): RowAttention {
  const rows = rowsOf(layout, shape);
  let onBlocks: Attention | undefined;
  const attend: Attention = (q, k, v, past) => {
    if (past && shape.mask.kind !== "causal") {
      throw new RangeError("only causal attention can continue a past");
    }
    const kernels = kernelsOn(q);
    if (kernels) return kernels.attention(q, k, v, { ...rows, past });
    onBlocks ??= blockAttention(layout, shape);
    return onBlocks(q, k, v, past);
  };
  return Object.assign(attend, { rows });
}

function rowsOf({ lengths }: RowLayout, { mask, ...heads }: AttentionShape): AttentionRows {
  const causal = mask.kind === "causal";
  return { ...heads, lengths, causal, radius: mask.kind === "window" ? mask.radius : undefined };
}

/** By mlx's own operations, on rows of similar length as dense blocks. */
function blockAttention(layout: RowLayout, shape: AttentionShape): Attention {
  const { heads, kvHeads, scale } = shape;
  const masks = layout.buckets.map((bucket) => blockMask(bucket, shape.mask));
  return (q, k, v, past) => {
    const keys = layout.blocks(k);
    const values = layout.blocks(v);
    const attended = layout.blocks(q).map((queries, i) => {
      const split: SplitHeads = {
        queries: splitHeads(queries, heads),
        keys: splitHeads(continued(past?.keys, keys[i]!), kvHeads),
        values: splitHeads(continued(past?.values, values[i]!), kvHeads),
      };
      const mask = masks[i]!;
      return joinHeads(mask.causal ? attendCausally(split, scale) : attend(split, scale, mask));
    });
    return layout.tokens(attended);
  };
}

/** [b, heads or kvHeads, width, headDim] */
interface SplitHeads {
  readonly queries: Tensor;
  readonly keys: Tensor;
  readonly values: Tensor;
}

function attend({ queries, keys, values }: SplitHeads, scale: number, mask: BlockMask): Tensor {
  return mx.scaledDotProductAttention(queries, keys, values, scale, mask);
}

/**
 * The last query sees all keys, each one before it one key less. Some queries at a time with the keys up to the last
 * of them: the others are hidden from all of these queries anyway.
 */
function attendCausally({ queries, keys, values }: SplitHeads, scale: number): Tensor {
  const width = queries.shape[2]!;
  const earlier = keys.shape[2]! - width;
  const parts: Tensor[] = [];
  for (let start = 0; start < width; start += CAUSAL_QUERIES) {
    const end = Math.min(start + CAUSAL_QUERIES, width);
    const part: SplitHeads = {
      queries: cells(queries, start, end),
      keys: cells(keys, 0, earlier + end),
      values: cells(values, 0, earlier + end),
    };
    parts.push(attend(part, scale, { causal: true }));
  }
  return parts.length === 1 ? parts[0]! : mx.concatenate(parts, 2);
}

/** [b, heads, width, headDim] -> [b, heads, end - start, headDim] */
function cells(x: Tensor, start: number, end: number): Tensor {
  const [b, heads, width, headDim] = [x.shape[0]!, x.shape[1]!, x.shape[2]!, x.shape[3]!];
  if (start === 0 && end === width) return x;
  return mx.slice(x, [0, 0, start, 0], [b, heads, end, headDim]);
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

/**
 * Which keys a query of the block may see. Every query sees at least one key, cells behind the end of a row too,
 * so that a softmax never runs over nothing.
 */
function blockMask(bucket: Bucket, mask: Mask): BlockMask {
  switch (mask.kind) {
    case "full":
      return bucket.padded ? { mask: isReal(bucket, "key") } : {};
    case "causal":
      // The cells behind a row come after all of its tokens: no real query sees them.
      return { causal: true };
    case "window": {
      const near = withinRadius(bucket.width, mask.radius);
      if (!bucket.padded) return { mask: near };
      const keyIsReal = isReal(bucket, "key");
      const queryIsPadding = mx.logicalNot(isReal(bucket, "query"));
      return { mask: mx.logicalAnd(near, mx.logicalOr(keyIsReal, queryIsPadding)) };
    }
  }
}

/** Bool, [b, 1, 1, width] over keys or [b, 1, width, 1] over queries. */
function isReal({ lengths, width }: Bucket, side: "key" | "query"): Tensor {
  const lengthOfRow = mx.fromInt32(lengths, [lengths.length, 1, 1, 1]);
  return mx.less(cellNumbers(width, side), lengthOfRow);
}

/** Bool, [1, 1, width, width]: |q - k| <= radius. */
function withinRadius(width: number, radius: number): Tensor {
  const distance = mx.abs(mx.subtract(cellNumbers(width, "query"), cellNumbers(width, "key")));
  return mx.lessEqual(distance, mx.scalar(radius, "int32"));
}

function cellNumbers(width: number, side: "key" | "query"): Tensor {
  const numbers = Int32Array.from({ length: width }, (_, cell) => cell);
  return mx.fromInt32(numbers, side === "key" ? [1, 1, 1, width] : [1, 1, width, 1]);
}
