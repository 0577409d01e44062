import { mlx } from "./library.ts";
import { optionalFloat } from "./optional.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

function orNull(tensor: Tensor | null | undefined): number {
  return tensor ? pointer(tensor) : 0;
}

/** (x - mean) / sqrt(variance + eps) * weight + bias over the last axis, accumulated in f32. */
export function layerNorm(
  x: Tensor,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): Tensor {
  return result(
    "layerNorm",
    mlx.mlx_fast_layer_norm(slot, pointer(x), orNull(weight), orNull(bias), eps, stream()),
  );
}

/** x / sqrt(mean(x²) + eps) * weight over the last axis, accumulated in f32. */
export function rmsNorm(x: Tensor, weight: Tensor | null, eps: number): Tensor {
  return result("rmsNorm", mlx.mlx_fast_rms_norm(slot, pointer(x), orNull(weight), eps, stream()));
}

interface RopeOptions {
  /** Leading components of the last axis that are rotated. */
  readonly dims: number;
  /** Pairs neighbours instead of the two halves. */
  readonly traditional?: boolean;
  /** Base of the frequencies; leave it out when `freqs` are given. */
  readonly base?: number | undefined;
  /** Factor on the positions. */
  readonly scale?: number;
  /** Position of the first element of the second-last axis: one for all, or an int32 tensor [B]. */
  readonly offset?: number | Tensor;
  /** [dims / 2] wavelengths divided by 2π, instead of `base`. */
  readonly freqs?: Tensor | undefined;
}

/** Rotary position embedding (RoFormer, arXiv 2104.09864) on x [..., T, D]. */
export function rope(x: Tensor, options: RopeOptions): Tensor {
  const { dims, traditional = false, base, scale = 1, offset = 0, freqs } = options;
  const period = optionalFloat(base);
  const frequencies = orNull(freqs);
  if (typeof offset === "number") {
    return result(
      "rope",
      mlx.mlx_fast_rope(
        slot,
        pointer(x),
        dims,
        traditional,
        period,
        scale,
        offset,
        frequencies,
        stream(),
      ),
    );
  }
  return result(
    "rope",
    mlx.mlx_fast_rope_dynamic(
      slot,
      pointer(x),
      dims,
      traditional,
      period,
      scale,
      pointer(offset),
      frequencies,
      stream(),
    ),
  );
}

export interface AttentionMask {
  /** Added to the scores, or (bool) true where a key counts; broadcasts to [B, heads, T, S]. */
  readonly mask?: Tensor | undefined;
  /** Each query sees the keys up to its own position. Not together with `mask`. */
  readonly causal?: boolean | undefined;
}

/**
 * softmax(q kᵀ · scale + mask) v, accumulated in f32. q [B, heads, T, D]; k and v [B, kvHeads, S, D], where heads is
 * a multiple of kvHeads.
 */
export function scaledDotProductAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  scale: number,
  { mask, causal = false }: AttentionMask = {},
): Tensor {
  const mode = causal ? "causal" : mask ? "array" : "";
  return result(
    "scaledDotProductAttention",
    mlx.mlx_fast_scaled_dot_product_attention(
      slot,
      pointer(q),
      pointer(k),
      pointer(v),
      scale,
      mode,
      orNull(mask),
      0,
      false,
      stream(),
    ),
  );
}
