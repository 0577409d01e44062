import { toArrayBuffer } from "bun:ffi";
import { type Dtype, dtypeCode } from "./dtype.ts";
import { check, MlxError } from "./error.ts";
import { mlx } from "./library.ts";
import { elements, first } from "./sizes.ts";
import { slot } from "./slot.ts";
import { cpuStream, stream } from "./stream.ts";
import { created, pointer, result, type Tensor } from "./tensor.ts";

/** A copy of the values, row-major. Throws when their number is not that of the shape. */
export function fromFloat32(values: Float32Array, shape: readonly number[]): Tensor {
  return fromValues("fromFloat32", values, shape, "float32");
}

/** A copy of the values, row-major. Throws when their number is not that of the shape. */
export function fromInt32(values: Int32Array, shape: readonly number[]): Tensor {
  return fromValues("fromInt32", values, shape, "int32");
}

/** A copy of the values, row-major. Throws when their number is not that of the shape. */
export function fromUint32(values: Uint32Array, shape: readonly number[]): Tensor {
  return fromValues("fromUint32", values, shape, "uint32");
}

const nothing = new Uint32Array(1);

function fromValues(
  operation: string,
  values: Float32Array | Int32Array | Uint32Array,
  shape: readonly number[],
  dtype: Dtype,
): Tensor {
  if (elements(shape) !== values.length) {
    throw new MlxError(
      operation,
      `${values.length} values do not fill the shape [${shape.join(", ")}]`,
    );
  }
  const axes = first.set(operation, shape);
  // An empty typed array has no address
  const source = values.length === 0 ? nothing : values;
  return created(operation, mlx.mlx_array_new_data(source, first.address, axes, dtypeCode(dtype)));
}

/**
 * A tensor whose bytes `write` fills, row-major, without a copy in between. The bytes are zero before and not to be
 * touched afterwards.
 */
export function written(
  shape: readonly number[],
  dtype: Dtype,
  write: (bytes: Uint8Array<ArrayBuffer>) => void,
): Tensor {
  const axes = first.set("written", shape);
  const code = dtypeCode(dtype);
  const tensor = result("written", mlx.mlx_zeros(slot, first.address, axes, code, cpuStream()));
  const handle = pointer(tensor);
  check("written", mlx.mlx_array_eval(handle));
  const start = mlx.mlx_array_data_uint8(handle);
  try {
    if (tensor.size > 0 && start !== null) {
      write(new Uint8Array(toArrayBuffer(start, 0, tensor.byteLength)));
    }
    return tensor;
  } catch (error) {
    tensor.free();
    throw error;
  }
}

/** A tensor without axes. Integer types take whole numbers within the range of int32. */
export function scalar(value: number, dtype: Dtype = "float32"): Tensor {
  switch (dtype) {
    case "bool":
      return created("scalar", mlx.mlx_array_new_bool(value !== 0));
    case "float32":
      return created("scalar", mlx.mlx_array_new_float32(value));
    case "float64":
      return created("scalar", mlx.mlx_array_new_float64(value));
    case "complex64":
      return created("scalar", mlx.mlx_array_new_complex(value, 0));
    case "float16":
    case "bfloat16":
      return converted(created("scalar", mlx.mlx_array_new_float32(value)), dtype);
    default:
      if (value !== (value | 0)) {
        throw new MlxError("scalar", `${value} is not a whole number within the range of int32`);
      }
      return converted(created("scalar", mlx.mlx_array_new_int(value)), dtype);
  }
}

function converted(source: Tensor, dtype: Dtype): Tensor {
  try {
    return astype(source, dtype);
  } finally {
    source.free();
  }
}

export function zeros(shape: readonly number[], dtype: Dtype = "float32"): Tensor {
  const axes = first.set("zeros", shape);
  return result("zeros", mlx.mlx_zeros(slot, first.address, axes, dtypeCode(dtype), stream()));
}

export function ones(shape: readonly number[], dtype: Dtype = "float32"): Tensor {
  const axes = first.set("ones", shape);
  return result("ones", mlx.mlx_ones(slot, first.address, axes, dtypeCode(dtype), stream()));
}

/** 0, 1 … n - 1. */
export function arange(n: number, dtype: Dtype = "int32"): Tensor {
  return result("arange", mlx.mlx_arange(slot, 0, n, 1, dtypeCode(dtype), stream()));
}

/** The tensor in another type; 16-bit floats round to nearest even. */
export function astype(a: Tensor, dtype: Dtype): Tensor {
  return result("astype", mlx.mlx_astype(slot, pointer(a), dtypeCode(dtype), stream()));
}
