/**
 * The C types that occur in the symbol tables, spelled as in the headers of mlx-c (without `const`). The handle
 * types (`mlx_array`, `mlx_stream` …) are structs of one pointer: by value they travel like a pointer.
 */
const kinds = {
  void: "void",
  bool: "bool",
  int: "i32",
  float: "f32",
  double: "f64",
  size_t: "u64",
  mlx_dtype: "i32",
  mlx_device_type: "i32",
  // {int|float value; bool has_value}: one 64-bit register, see optionalInt and optionalFloat.
  mlx_optional_int: "u64",
  mlx_optional_float: "u64",
  mlx_optional_dtype: "u64",
  "char*": "cstring",
  "void*": "ptr",
  "int*": "ptr",
  "bool*": "ptr",
  "size_t*": "ptr",
  "float*": "ptr",
  "uint8_t*": "ptr",
  "int32_t*": "ptr",
  "char**": "ptr",
  mlx_array: "ptr",
  "mlx_array*": "ptr",
  mlx_device: "ptr",
  mlx_device_info: "ptr",
  "mlx_device_info*": "ptr",
  mlx_stream: "ptr",
  mlx_string: "ptr",
  "mlx_string*": "ptr",
  mlx_vector_array: "ptr",
  "mlx_vector_array*": "ptr",
  mlx_map_string_to_array: "ptr",
  "mlx_map_string_to_array*": "ptr",
  mlx_map_string_to_string: "ptr",
  "mlx_map_string_to_string*": "ptr",
  mlx_error_handler_func: "ptr",
  "void(*)(void*)": "ptr",
} as const;

type CType = keyof typeof kinds;

/** A C function as its header declares it. */
interface Signature {
  readonly args: readonly CType[];
  readonly returns: CType;
}

export type SymbolTable = Readonly<Record<string, Signature>>;

type Passed<T extends CType> = (typeof kinds)[T] extends "bool"
  ? boolean
  : (typeof kinds)[T] extends "cstring"
    ? string
    : (typeof kinds)[T] extends "ptr"
      ? number | NodeJS.TypedArray
      : number;

type Returned<T extends CType> = (typeof kinds)[T] extends "void"
  ? void
  : (typeof kinds)[T] extends "bool"
    ? boolean
    : (typeof kinds)[T] extends "cstring"
      ? string | null
      : (typeof kinds)[T] extends "u64"
        ? bigint
        : (typeof kinds)[T] extends "ptr"
          ? number | null
          : number;

type PassedAll<Args extends readonly CType[]> = { [I in keyof Args]: Passed<Args[I]> };

/** The callable form of a symbol table. Handles and addresses are plain numbers, NULL as an argument is 0. */
export type Callable<Table extends SymbolTable> = {
  readonly [Name in keyof Table]: (
    ...args: PassedAll<Table[Name]["args"]>
  ) => Returned<Table[Name]["returns"]>;
};

/** Writes one line of a symbol table: the return type first, as in C. */
export function c<const Returns extends CType, const Args extends readonly CType[]>(
  returns: Returns,
  ...args: Args
): { readonly args: Args; readonly returns: Returns } {
  return { args, returns };
}

/** The table in the notation of bun:ffi. */
export function foreignFunctions(table: SymbolTable) {
  return Object.fromEntries(
    Object.entries(table).map(([name, { args, returns }]) => [
      name,
      { args: args.map((type) => kinds[type]), returns: kinds[returns] },
    ]),
  );
}
