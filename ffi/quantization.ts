import { zeros } from "./creation.ts";
import { type Dtype, dtypeCode } from "./dtype.ts";
import { slice, take } from "./indexing.ts";
import { concatenate } from "./layout.ts";
import { mlx } from "./library.ts";
import { NO_TENSOR, optionalInt, optionalTensor } from "./optional.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";
import { results } from "./vector.ts";

/**
 * What a packed element stands for: `affine` a whole number times the scale of its group plus the bias of its group;
 * the others a small float (OCP Microscaling, NVFP4) times the scale of its group, an 8-bit float.
 */
export type QuantizationMode = "affine" | "mxfp4" | "nvfp4" | "mxfp8";

/** How weights are packed: `bits` per element, one scale per `groupSize` elements of a row. */
export interface Packing {
  readonly groupSize: number;
  readonly bits: number;
  readonly mode: QuantizationMode;
}

/** Quantized weights [N, K]. */
export interface Quantized {
  readonly packing: Packing;
  /** [N, K · bits / 32] uint32. */
  readonly packed: Tensor;
  /** [N, K / groupSize], floats for `affine` and uint8 otherwise. */
  readonly scales: Tensor;
  /** [N, K / groupSize], for `affine` alone. */
  readonly biases?: Tensor | undefined;
}

/** On the CPU mlx reads the scales of nvfp4 in words: their number must be a multiple of this. */
export const FP8_SCALES_AT_ONCE = 4;

/** Packs w [N, K]. The group size must divide K. */
export function quantize(w: Tensor, packing: Packing): Quantized {
  const { groupSize, bits, mode } = packing;
  const [packed, scales, biases] = results(
    "quantize",
    mlx.mlx_quantize(
      slot,
      pointer(w),
      optionalInt(groupSize),
      optionalInt(bits),
      mode,
      NO_TENSOR,
      stream(),
    ),
  );
  return { packing, packed: packed!, scales: scales!, biases };
}

/** The weights [N, K] in `dtype`; without it in that of the scales, or bfloat16 where these are 8-bit floats. */
export function dequantize({ packing, ...w }: Quantized, dtype?: Dtype): Tensor {
  const { groupSize, bits, mode } = packing;
  return result(
    "dequantize",
    mlx.mlx_dequantize(
      slot,
      pointer(w.packed),
      pointer(w.scales),
      optionalTensor(w.biases),
      optionalInt(groupSize),
      optionalInt(bits),
      mode,
      NO_TENSOR,
      optionalInt(dtype === undefined ? undefined : dtypeCode(dtype)),
      stream(),
    ),
  );
}

/** Rows of the weights, [M] int32 indices -> [M, K] as `dequantize`. Indices must lie within them. */
export function dequantizeRows(w: Quantized, indices: Tensor): Tensor {
  const { packing, packed, scales, biases } = w;
  const count = indices.size;
  const surplus = packing.mode === "nvfp4" ? -count & (FP8_SCALES_AT_ONCE - 1) : 0;
  const wanted = surplus === 0 ? indices : concatenate([indices, zeros([surplus], "int32")], 0);
  const rows = dequantize({
    packing,
    packed: take(packed, wanted, 0),
    scales: take(scales, wanted, 0),
    biases: biases && take(biases, wanted, 0),
  });
  return surplus === 0 ? rows : slice(rows, [0, 0], [count, rows.shape[1]!]);
}

/** x [..., K] times wᵀ, w [N, K] -> [..., N]; with `transposed` false x [..., N] times w. */
export function quantizedMatmul(
  x: Tensor,
  { packing, ...w }: Quantized,
  transposed = true,
): Tensor {
  const { groupSize, bits, mode } = packing;
  return result(
    "quantizedMatmul",
    mlx.mlx_quantized_matmul(
      slot,
      pointer(x),
      pointer(w.packed),
      pointer(w.scales),
      optionalTensor(w.biases),
      transposed,
      optionalInt(groupSize),
      optionalInt(bits),
      mode,
      stream(),
    ),
  );
}
