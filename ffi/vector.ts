import { check, failure } from "./error.ts";
import { mlx } from "./library.ts";
import { readSlot, slot } from "./slot.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

/** Calls `use` with a `mlx_vector_array` of the tensors and frees it afterwards. */
export function withVector<T>(tensors: readonly Tensor[], use: (vector: number) => T): T {
  const vector = mlx.mlx_vector_array_new();
  if (vector === null) throw failure("vector");
  try {
    for (const tensor of tensors) {
      check("vector", mlx.mlx_vector_array_append_value(vector, pointer(tensor)));
    }
    return use(vector);
  } finally {
    mlx.mlx_vector_array_free(vector);
  }
}

/** The tensors of the vector that an operation left in the slot. */
export function results(operation: string, status: number): Tensor[] {
  const vector = readSlot();
  if (status !== 0) throw failure(operation);
  const length = Number(mlx.mlx_vector_array_size(vector));
  const tensors = Array.from({ length }, (_, i) =>
    result(operation, mlx.mlx_vector_array_get(slot, vector, i)),
  );
  mlx.mlx_vector_array_free(vector);
  return tensors;
}
