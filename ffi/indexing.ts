import { mlx } from "./library.ts";
import { first, second, third } from "./sizes.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

/** Elements from `start` up to but not including `stop` on every axis, every `strides`-th. */
export function slice(
  a: Tensor,
  start: readonly number[],
  stop: readonly number[],
  strides: readonly number[] = start.map(() => 1),
): Tensor {
  const starts = first.set("slice", start);
  const stops = second.set("slice", stop);
  const steps = third.set("slice", strides);
  return result(
    "slice",
    mlx.mlx_slice(
      slot,
      pointer(a),
      first.address,
      starts,
      second.address,
      stops,
      third.address,
      steps,
      stream(),
    ),
  );
}

/** Picks whole slices of an axis by index: rows of a table for axis 0. Indices are not checked against its length. */
export function take(a: Tensor, indices: Tensor, axis = 0): Tensor {
  return result("take", mlx.mlx_take_axis(slot, pointer(a), pointer(indices), axis, stream()));
}

/** Picks along one axis by an index per element; `indices` has the rank of `a`. */
export function takeAlongAxis(a: Tensor, indices: Tensor, axis: number): Tensor {
  return result(
    "takeAlongAxis",
    mlx.mlx_take_along_axis(slot, pointer(a), pointer(indices), axis, stream()),
  );
}
