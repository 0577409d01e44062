import { mlx } from "./library.ts";
import { first } from "./sizes.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";
import { results, withVector } from "./vector.ts";

/** Permutes the axes; without a list it reverses them. */
export function transpose(a: Tensor, axes?: readonly number[]): Tensor {
  if (axes === undefined) {
    return result("transpose", mlx.mlx_transpose(slot, pointer(a), stream()));
  }
  const count = first.set("transpose", axes);
  return result(
    "transpose",
    mlx.mlx_transpose_axes(slot, pointer(a), first.address, count, stream()),
  );
}

/** The same elements in row-major order under another shape; one size may be -1. */
export function reshape(a: Tensor, shape: readonly number[]): Tensor {
  const count = first.set("reshape", shape);
  return result("reshape", mlx.mlx_reshape(slot, pointer(a), first.address, count, stream()));
}

/** Inserts axes of length 1; positions count in the result. */
export function expandDims(a: Tensor, axes: number | readonly number[]): Tensor {
  const count = first.set("expandDims", typeof axes === "number" ? [axes] : axes);
  return result(
    "expandDims",
    mlx.mlx_expand_dims_axes(slot, pointer(a), first.address, count, stream()),
  );
}

/** Repeats axes of length 1 to the given shape, without copying. */
export function broadcastTo(a: Tensor, shape: readonly number[]): Tensor {
  const count = first.set("broadcastTo", shape);
  return result(
    "broadcastTo",
    mlx.mlx_broadcast_to(slot, pointer(a), first.address, count, stream()),
  );
}

/** Lays the elements out densely in row-major order, where they are not already. */
export function contiguous(a: Tensor): Tensor {
  return result("contiguous", mlx.mlx_contiguous(slot, pointer(a), false, stream()));
}

/** Joins tensors along an existing axis. */
export function concatenate(tensors: readonly Tensor[], axis = 0): Tensor {
  return withVector(tensors, (vector) =>
    result("concatenate", mlx.mlx_concatenate_axis(slot, vector, axis, stream())),
  );
}

/** Cuts an axis into equal parts (a number) or before the given indices (a list). */
export function split(a: Tensor, parts: number | readonly number[], axis = 0): Tensor[] {
  if (typeof parts === "number") {
    return results("split", mlx.mlx_split(slot, pointer(a), parts, axis, stream()));
  }
  const count = first.set("split", parts);
  return results(
    "split",
    mlx.mlx_split_sections(slot, pointer(a), first.address, count, axis, stream()),
  );
}
