/** Element types, in the order of `mlx_dtype`. */
const dtypes = [
  "bool",
  "uint8",
  "uint16",
  "uint32",
  "uint64",
  "int8",
  "int16",
  "int32",
  "int64",
  "float16",
  "float32",
  "float64",
  "bfloat16",
  "complex64",
] as const;

export type Dtype = (typeof dtypes)[number];

/** Bytes per element. */
export const itemBytes: Readonly<Record<Dtype, number>> = {
  bool: 1,
  uint8: 1,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  int8: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  float16: 2,
  float32: 4,
  float64: 8,
  bfloat16: 2,
  complex64: 8,
};

const codes = new Map(dtypes.map((name, code) => [name, code]));

/** The value of `mlx_dtype`. */
export function dtypeCode(dtype: Dtype): number {
  return codes.get(dtype)!;
}

export function dtypeOf(code: number): Dtype {
  return dtypes[code]!;
}
