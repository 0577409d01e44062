import { pointer, type Tensor } from "./tensor.ts";

const HAS_VALUE = 4294967296;
const bits = new Uint32Array(1);
const floats = new Float32Array(bits.buffer);

/** A `mlx_optional_int` or `mlx_optional_dtype` in the one register that it travels in. */
export function optionalInt(value: number | undefined): number {
  return value === undefined ? 0 : HAS_VALUE + value;
}

/** A `mlx_optional_float` in the one register that it travels in. */
export function optionalFloat(value: number | undefined): number {
  if (value === undefined) return 0;
  floats[0] = value;
  return HAS_VALUE + bits[0]!;
}

/** A `mlx_array` that is not there. */
export const NO_TENSOR = 0;

/** A `mlx_array` that may be missing. */
export function optionalTensor(tensor: Tensor | undefined): number {
  return tensor ? pointer(tensor) : NO_TENSOR;
}
