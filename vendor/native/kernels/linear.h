// y = x Wᵀ with packed weights, and what follows it while the results are in the cache.
#pragma once

#include "activation.h"
#include "kernel_table.h"
#include "tile.h"

namespace {

using mlxcel::Block;
using mlxcel::kDepth;
using mlxcel::LinearTask;
using mlxcel::Matrix;

#if defined(__AVX512BF16__)
typedef PairMultiplyAdd WeightProduct;

/// Two numbers as bf16, rounded to nearest, ties to even.
MLXCEL_INLINE float element(const float *inputs, long count) {
  const __m128bh pair = _mm_cvtneps_pbh(_mm_setr_ps(inputs[0], count > 1 ? inputs[1] : 0, 0, 0));
  float bits;
  __builtin_memcpy(&bits, &pair, sizeof(bits));
  return bits;
}
#else
typedef MultiplyAdd WeightProduct;

MLXCEL_INLINE float element(const float *inputs, long) { return *inputs; }
#endif

/// Elements that hold so many inputs.
MLXCEL_INLINE long elementsOf(long inputs) {
  return (inputs + WeightProduct::kInputs - 1) / WeightProduct::kInputs;
}

void pack(const float *weights, long inputs, long outputs, long first, long last, float *packed) {
  for (long panel = first; panel < last; panel++) {
    float *to = packed + panel * elementsOf(inputs) * kTileColumns;
    const long start = panel * kTileColumns;
    const long columns = outputs - start < kTileColumns ? outputs - start : kTileColumns;
    for (long k = 0; k < inputs; k += WeightProduct::kInputs, to += kTileColumns) {
      for (long c = 0; c < columns; c++)
        to[c] = element(weights + (start + c) * inputs + k, inputs - k);
      for (long c = columns; c < kTileColumns; c++) to[c] = 0;
    }
  }
}

struct Tile {
  alignas(64) float values[kTileRows * kTileColumns];
};

#if defined(__AVX512BF16__)
/// `rows` rows of `width` columns as elements.
MLXCEL_INLINE Matrix operandOf(const Matrix &x, long rows, long width, float *copy) {
  const long stride = elementsOf(width) + kLanes;
  for (long r = 0; r < rows; r++) {
    const float *from = x.values + r * x.stride;
    for (long i = 0; i < width; i += kLanes) {
      const long left = width - i;
      const Vec numbers = left >= kLanes ? load(from + i) : loadPart(from + i, left);
      const __m256bh rounded = _mm512_cvtneps_pbh((__m512)numbers);
      __builtin_memcpy(copy + r * stride + i / 2, &rounded, sizeof(rounded));
    }
  }
  return {copy, stride};
}
#else
/// Strides of a multiple of 4 KiB put the rows of a tile into the same few places of the L1 cache.
MLXCEL_INLINE bool rowsCollide(long stride) { return stride % 1024 == 0; }

/// `rows` rows of `width` columns, copied where another stride is better.
MLXCEL_INLINE Matrix operandOf(const Matrix &x, long rows, long width, float *copy) {
  if (!rowsCollide(x.stride)) return x;
  const long stride = width + kLanes;
  for (long r = 0; r < rows; r++)
    __builtin_memcpy(copy + r * stride, x.values + r * x.stride, width * sizeof(float));
  return {copy, stride};
}
#endif

/// Where a tile of sums belongs: rows from `row` on, columns from `column` on.
struct Place {
  long row, rows;
  long column;
};

/// Bias, activation, the factor `up` and the residual, in one pass over a tile of complete sums.
template <mlxcel::Activation kind>
void conclude(const LinearTask &task, const Tile *tiles, const Place &place) {
  for (int v = 0; v < kTileVectors; v++) {
    const long column = place.column + v * kLanes;
    const long left = task.outputs - column;
    if (left <= 0) return;
    const auto read = [left](const float *from) {
      return left >= kLanes ? load(from) : loadPart(from, left);
    };
    const Vec bias = task.weights.bias ? read(task.weights.bias + column) : Vec{};
    const Vec up_bias = task.up.bias ? read(task.up.bias + column) : Vec{};
    for (long r = 0; r < place.rows; r++) {
      const long in_tile = r * kTileColumns + v * kLanes;
      const long in_result = (place.row + r) * task.outputs + column;
      Vec x = activated<kind>(load(tiles[0].values + in_tile) + bias);
      if (task.up.packed) x *= load(tiles[1].values + in_tile) + up_bias;
      if (task.residual) x += read(task.residual + in_result);
      if (left >= kLanes) store(task.result + in_result, x);
      else storePart(task.result + in_result, x, left);
    }
  }
}

typedef void (*Conclude)(const LinearTask &, const Tile *, const Place &);

MLXCEL_INLINE Conclude concludeWith(mlxcel::Activation kind) {
  using mlxcel::Activation;
  static constexpr Conclude table[mlxcel::kActivations] = {
      conclude<Activation::identity>, conclude<Activation::gelu>, conclude<Activation::geluTanh>,
      conclude<Activation::relu>,     conclude<Activation::silu>, conclude<Activation::tanh>,
  };
  return table[static_cast<int>(kind)];
}

void linear(const LinearTask &task, const Block &block) {
  const long inputs = task.inputs;
  const long elements = elementsOf(inputs);
  const long passes = (elements + kDepth - 1) / kDepth;
  const long depth = (elements + passes - 1) / passes * WeightProduct::kInputs;
  const long matrices = task.up.packed ? 2 : 1;
  const long panels = block.last_panel - block.first_panel;
  const long height = (block.last_row - block.first_row + kTileRows - 1) / kTileRows;
  // Sums of more than one pass wait for the next one.
  const long tile_count = passes > 1 ? height * panels * matrices : matrices;
  Tile *const tiles = reinterpret_cast<Tile *>(
      mlxcel::threadScratch(mlxcel::Scratch::kernel,
                            tile_count * kTileRows * kTileColumns + kTileRows * (depth + kLanes)));
  float *const copy = tiles[tile_count].values;
  const Conclude finish = concludeWith(task.activation);

  for (long start = 0; start < inputs; start += depth) {
    const long count = inputs - start < depth ? inputs - start : depth;
    const bool complete = start + count == inputs;
    Tile *at = tiles;
    long rows;
    for (long row = block.first_row; row < block.last_row; row += rows) {
      rows = nextTileRows(block.last_row - row);
      const Product multiply =
          start > 0 ? productOf<WeightProduct, true>(rows) : productOf<WeightProduct, false>(rows);
      const Matrix own = {task.x.values + row * task.x.stride + start, task.x.stride};
      const Matrix x = operandOf(own, rows, count, copy);
      for (long panel = block.first_panel; panel < block.last_panel; panel++) {
        const long place = (panel * elements + elementsOf(start)) * kTileColumns;
        multiply(elementsOf(count), x.values, x.stride, task.weights.packed + place, kTileColumns,
                 at[0].values, kTileColumns);
        if (task.up.packed)
          multiply(elementsOf(count), x.values, x.stride, task.up.packed + place, kTileColumns,
                   at[1].values, kTileColumns);
        if (complete) finish(task, at, {row, rows, panel * kTileColumns});
        if (passes > 1) at += matrices;
      }
    }
  }
}

} // namespace
