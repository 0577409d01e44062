import { mlx } from "./library.ts";
import { first } from "./sizes.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

/** One axis, several, or (undefined) all. Negative axes count from the end. */
type Axes = number | readonly number[] | undefined;

interface Reduction {
  readonly name: string;
  readonly overAll: typeof mlx.mlx_sum;
  readonly overAxis: typeof mlx.mlx_sum_axis;
  readonly overAxes: typeof mlx.mlx_sum_axes;
}

function reduce(reduction: Reduction, a: Tensor, axes: Axes, keepdims: boolean): Tensor {
  const { name, overAll, overAxis, overAxes } = reduction;
  if (axes === undefined) return result(name, overAll(slot, pointer(a), keepdims, stream()));
  if (typeof axes === "number") {
    return result(name, overAxis(slot, pointer(a), axes, keepdims, stream()));
  }
  const count = first.set(name, axes);
  return result(name, overAxes(slot, pointer(a), first.address, count, keepdims, stream()));
}

const sums: Reduction = {
  name: "sum",
  overAll: mlx.mlx_sum,
  overAxis: mlx.mlx_sum_axis,
  overAxes: mlx.mlx_sum_axes,
};

export function sum(a: Tensor, axes?: Axes, keepdims = false): Tensor {
  return reduce(sums, a, axes, keepdims);
}

const means: Reduction = {
  name: "mean",
  overAll: mlx.mlx_mean,
  overAxis: mlx.mlx_mean_axis,
  overAxes: mlx.mlx_mean_axes,
};

/** The mean; integers are averaged as f32. */
export function mean(a: Tensor, axes?: Axes, keepdims = false): Tensor {
  return reduce(means, a, axes, keepdims);
}

const maxima: Reduction = {
  name: "max",
  overAll: mlx.mlx_max,
  overAxis: mlx.mlx_max_axis,
  overAxes: mlx.mlx_max_axes,
};

export function max(a: Tensor, axes?: Axes, keepdims = false): Tensor {
  return reduce(maxima, a, axes, keepdims);
}

const everywhere: Reduction = {
  name: "all",
  overAll: mlx.mlx_all,
  overAxis: mlx.mlx_all_axis,
  overAxes: mlx.mlx_all_axes,
};

/** True where every element is. */
export function all(a: Tensor, axes?: Axes, keepdims = false): Tensor {
  return reduce(everywhere, a, axes, keepdims);
}

/** exp(a) / sum(exp(a)) along an axis; `precise` accumulates 16-bit input in f32. */
export function softmax(a: Tensor, axis: number, precise = true): Tensor {
  return result("softmax", mlx.mlx_softmax_axis(slot, pointer(a), axis, precise, stream()));
}
