import { type Dtype, dtypeCode } from "./dtype.ts";
import { mlx } from "./library.ts";
import { optionalInt } from "./optional.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";
import { results } from "./vector.ts";

/** How weights are packed: `bits` per element, one scale and bias per `groupSize` elements of a row. */
export interface Packing {
  readonly groupSize: number;
  readonly bits: number;
}

/** Affinely quantized weights: w = packed · scale + bias, group by group. */
export interface Quantized {
  /** [N, K · bits / 32] uint32. */
  readonly packed: Tensor;
  /** [N, K / groupSize]. */
  readonly scales: Tensor;
  /** [N, K / groupSize]. */
  readonly biases: Tensor;
}

const MODE = "affine";

/** Packs w [N, K]. */
export function quantize(w: Tensor, { groupSize, bits }: Packing): Quantized {
  const [packed, scales, biases] = results(
    "quantize",
    mlx.mlx_quantize(
      slot,
      pointer(w),
      optionalInt(groupSize),
      optionalInt(bits),
      MODE,
      0,
      stream(),
    ),
  );
  return { packed: packed!, scales: scales!, biases: biases! };
}

/** The weights [N, K] in the type of the scales, or in another. */
export function dequantize(w: Quantized, { groupSize, bits }: Packing, dtype?: Dtype): Tensor {
  return result(
    "dequantize",
    mlx.mlx_dequantize(
      slot,
      pointer(w.packed),
      pointer(w.scales),
      pointer(w.biases),
      optionalInt(groupSize),
      optionalInt(bits),
      MODE,
      0,
      optionalInt(dtype === undefined ? undefined : dtypeCode(dtype)),
      stream(),
    ),
  );
}

/** x [..., K] times wᵀ, w [N, K] -> [..., N]; with `transposed` false x [..., N] times w. */
export function quantizedMatmul(
  x: Tensor,
  w: Quantized,
  { groupSize, bits }: Packing,
  transposed = true,
): Tensor {
  return result(
    "quantizedMatmul",
    mlx.mlx_quantized_matmul(
      slot,
      pointer(x),
      pointer(w.packed),
      pointer(w.scales),
      pointer(w.biases),
      transposed,
      optionalInt(groupSize),
      optionalInt(bits),
      MODE,
      stream(),
    ),
  );
}
