import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
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

/** q [N, heads * headDim], k and v [N, kvHeads * headDim] -> [N, heads * headDim]. */
export type Attention = (q: Tensor, k: Tensor, v: Tensor) => Tensor;

type BlockMask = { mask?: Tensor; causal?: boolean };

/**
 * Attention within each row of a ragged batch (Vaswani et al. 2017, eq. 1). Build it once per forward and mask
 * kind, and use it in every layer: its masks live in the scope that it was built in.
 */
export function attention(layout: RowLayout, shape: AttentionShape): Attention {
  const masks = layout.buckets.map((bucket) => blockMask(bucket, shape.mask));
  return (q, k, v) => {
    const keys = layout.blocks(k);
    const values = layout.blocks(v);
    const attended = layout.blocks(q).map((queries, i) => {
      const out = mx.scaledDotProductAttention(
        splitHeads(queries, shape.heads),
        splitHeads(keys[i]!, shape.kvHeads),
        splitHeads(values[i]!, shape.kvHeads),
        shape.scale,
        masks[i],
      );
      const [b, heads, width, headDim] = [
        out.shape[0]!,
        out.shape[1]!,
        out.shape[2]!,
        out.shape[3]!,
      ];
      // [b, heads, width, headDim] -> [b, width, heads * headDim]
      return mx.reshape(mx.transpose(out, [0, 2, 1, 3]), [b, width, heads * headDim]);
    });
    return layout.tokens(attended);
  };
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
