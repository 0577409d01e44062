import { toArrayBuffer } from "bun:ffi";
import { type Dtype, dtypeCode, dtypeOf, itemBytes } from "./dtype.ts";
import { check, failure, MlxError } from "./error.ts";
import { mlx } from "./library.ts";
import { clockOperation } from "./operation-clock.ts";
import { readSlot, slot } from "./slot.ts";
import { stream } from "./stream.ts";

/** The address behind a tensor. Assigned inside the class, so that only modules of ffi/ can see it. */
export let pointer: (tensor: Tensor) => number;

/** Wraps the handle that an operation returned; the innermost scope of this thread owns it. */
let adopt: (handle: number) => Tensor;

/** Takes a tensor out of whatever scope it is in. */
export let disown: (tensor: Tensor) => void;

/** The tensors of the innermost scope of this thread. */
let owned: Tensor[] | undefined;

/** Opens a scope; returns the enclosing one for `leave`. */
export function enter(): Tensor[] | undefined {
  const outer = owned;
  owned = [];
  return outer;
}

/** Frees what the innermost scope made except survivors, which pass to the enclosing scope. */
export let leave: (outer: Tensor[] | undefined, survivors: ReadonlySet<Tensor> | undefined) => void;

/**
 * An n-dimensional array of mlx, evaluated lazily. A tensor belongs to the innermost scope in which it was made, or
 * to its maker outside of any; using it after it has been freed throws MlxError.
 */
export class Tensor {
  #handle: number;
  #kept = false;
  #shape: readonly number[] | undefined;

  private constructor(handle: number) {
    this.#handle = handle;
  }

  static {
    pointer = (tensor) => tensor.#live();
    adopt = (handle) => {
      const tensor = new Tensor(handle);
      owned?.push(tensor);
      return tensor;
    };
    disown = (tensor) => {
      tensor.#live();
      tensor.#kept = true;
    };
    leave = (outer, survivors) => {
      const made = owned ?? [];
      owned = outer;
      for (const tensor of made) {
        if (tensor.#kept) continue;
        if (survivors?.has(tensor)) outer?.push(tensor);
        else tensor.free();
      }
    };
  }

  #live(): number {
    if (this.#handle === 0) throw new MlxError("tensor", "used after it was freed");
    return this.#handle;
  }

  get shape(): readonly number[] {
    const handle = this.#live();
    this.#shape ??= Array.from({ length: Number(mlx.mlx_array_ndim(handle)) }, (_, axis) =>
      mlx.mlx_array_dim(handle, axis),
    );
    return this.#shape;
  }

  get dtype(): Dtype {
    return dtypeOf(mlx.mlx_array_dtype(this.#live()));
  }

  /** Number of elements. */
  get size(): number {
    return this.shape.reduce((product, length) => product * length, 1);
  }

  /** Bytes of the elements, laid out densely. */
  get byteLength(): number {
    return this.size * itemBytes[this.dtype];
  }

  get freed(): boolean {
    return this.#handle === 0;
  }

  /** Lets go of the array; mlx reuses its memory once nothing else needs it. Again is harmless. */
  free(): void {
    if (this.#handle === 0) return;
    const handle = this.#handle;
    this.#handle = 0;
    check("free", mlx.mlx_array_free(handle));
  }

  /** Evaluates, converts to f32 where it is another type, and copies the elements out in row-major order. */
  toFloat32(): Float32Array<ArrayBuffer> {
    return new Float32Array(
      this.#read("toFloat32", "float32", (handle) => mlx.mlx_array_data_float32(handle)),
    );
  }

  /** Evaluates, converts to i32 where it is another type, and copies the elements out in row-major order. */
  toInt32(): Int32Array<ArrayBuffer> {
    return new Int32Array(
      this.#read("toInt32", "int32", (handle) => mlx.mlx_array_data_int32(handle)),
    );
  }

  #read(operation: string, dtype: Dtype, address: (handle: number) => number | null): ArrayBuffer {
    const bytes = this.size * itemBytes[dtype];
    if (bytes === 0) return new ArrayBuffer(0);
    check(operation, mlx.mlx_astype(slot, this.#live(), dtypeCode(dtype), stream()));
    const converted = readSlot();
    let dense = 0;
    try {
      check(operation, mlx.mlx_contiguous(slot, converted, false, stream()));
      dense = readSlot();
      check(operation, mlx.mlx_array_eval(dense));
      const start = address(dense);
      if (start === null) throw failure(operation);
      return toArrayBuffer(start, 0, bytes).slice(0);
    } finally {
      mlx.mlx_array_free(converted);
      mlx.mlx_array_free(dense);
    }
  }
}

/** The tensor that an operation left in the slot; throws mlx's error when it failed. */
export function result(operation: string, status: number): Tensor {
  const handle = readSlot();
  if (status !== 0) throw failure(operation);
  clockOperation(operation, handle);
  return adopt(handle);
}

/** The tensor that a constructor returned; throws mlx's error when it is empty. */
export function created(operation: string, handle: number | null): Tensor {
  if (handle === null || handle === 0) throw failure(operation);
  return adopt(handle);
}
