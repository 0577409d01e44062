import { c } from "../signature.ts";

const unary = c("int", "mlx_array*", "mlx_array", "mlx_stream");
const binary = c("int", "mlx_array*", "mlx_array", "mlx_array", "mlx_stream");
const reduction = c("int", "mlx_array*", "mlx_array", "bool", "mlx_stream");
const axisReduction = c("int", "mlx_array*", "mlx_array", "int", "bool", "mlx_stream");
const axesReduction = c("int", "mlx_array*", "mlx_array", "int*", "size_t", "bool", "mlx_stream");
/** One list of sizes or axes: reshape, transpose, broadcast … */
const relayout = c("int", "mlx_array*", "mlx_array", "int*", "size_t", "mlx_stream");
const filled = c("int", "mlx_array*", "int*", "size_t", "mlx_dtype", "mlx_stream");
const indexing = c("int", "mlx_array*", "mlx_array", "mlx_array", "int", "mlx_stream");

/** mlx/c/ops.h */
export const ops = {
  // Arrays from nothing
  mlx_arange: c("int", "mlx_array*", "double", "double", "double", "mlx_dtype", "mlx_stream"),
  mlx_zeros: filled,
  mlx_ones: filled,

  // Element-wise
  mlx_abs: unary,
  mlx_exp: unary,
  mlx_sqrt: unary,
  mlx_square: unary,
  mlx_erf: unary,
  mlx_tanh: unary,
  mlx_sigmoid: unary,
  mlx_sin: unary,
  mlx_cos: unary,
  mlx_add: binary,
  mlx_subtract: binary,
  mlx_multiply: binary,
  mlx_divide: binary,
  mlx_maximum: binary,
  mlx_astype: c("int", "mlx_array*", "mlx_array", "mlx_dtype", "mlx_stream"),

  // Comparison
  mlx_less: binary,
  mlx_less_equal: binary,
  mlx_greater_equal: binary,
  mlx_logical_and: binary,
  mlx_logical_or: binary,
  mlx_isfinite: unary,
  mlx_where: c("int", "mlx_array*", "mlx_array", "mlx_array", "mlx_array", "mlx_stream"),

  // Products
  mlx_matmul: binary,
  mlx_addmm: c(
    "int",
    "mlx_array*",
    "mlx_array",
    "mlx_array",
    "mlx_array",
    "float",
    "float",
    "mlx_stream",
  ),

  // Reductions
  mlx_sum: reduction,
  mlx_sum_axis: axisReduction,
  mlx_sum_axes: axesReduction,
  mlx_mean: reduction,
  mlx_mean_axis: axisReduction,
  mlx_mean_axes: axesReduction,
  mlx_max: reduction,
  mlx_max_axis: axisReduction,
  mlx_max_axes: axesReduction,
  mlx_all: reduction,
  mlx_all_axis: axisReduction,
  mlx_all_axes: axesReduction,
  mlx_softmax_axis: axisReduction,

  // Layout
  mlx_transpose: unary,
  mlx_transpose_axes: relayout,
  mlx_reshape: relayout,
  mlx_broadcast_to: relayout,
  mlx_expand_dims_axes: relayout,
  mlx_contiguous: c("int", "mlx_array*", "mlx_array", "bool", "mlx_stream"),
  mlx_concatenate_axis: c("int", "mlx_array*", "mlx_vector_array", "int", "mlx_stream"),
  mlx_split: c("int", "mlx_vector_array*", "mlx_array", "int", "int", "mlx_stream"),
  mlx_split_sections: c(
    "int",
    "mlx_vector_array*",
    "mlx_array",
    "int*",
    "size_t",
    "int",
    "mlx_stream",
  ),

  // Indexing
  mlx_slice: c(
    "int",
    "mlx_array*",
    "mlx_array",
    "int*",
    "size_t",
    "int*",
    "size_t",
    "int*",
    "size_t",
    "mlx_stream",
  ),
  mlx_take_axis: indexing,
  mlx_take_along_axis: indexing,

  // Quantized weights
  mlx_quantize: c(
    "int",
    "mlx_vector_array*",
    "mlx_array",
    "mlx_optional_int",
    "mlx_optional_int",
    "char*",
    "mlx_array",
    "mlx_stream",
  ),
  mlx_dequantize: c(
    "int",
    "mlx_array*",
    "mlx_array",
    "mlx_array",
    "mlx_array",
    "mlx_optional_int",
    "mlx_optional_int",
    "char*",
    "mlx_array",
    "mlx_optional_dtype",
    "mlx_stream",
  ),
  mlx_quantized_matmul: c(
    "int",
    "mlx_array*",
    "mlx_array",
    "mlx_array",
    "mlx_array",
    "mlx_array",
    "bool",
    "mlx_optional_int",
    "mlx_optional_int",
    "char*",
    "mlx_stream",
  ),
};
