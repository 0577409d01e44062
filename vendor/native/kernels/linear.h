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

MLXCEL_INLINE void addBias(Tile &tile, const float *bias, long rows, long columns) {
  for (int v = 0; v < kTileVectors; v++) {
    const long start = v * kLanes;
    const long left = columns - start;
    if (left <= 0) return;
    const Vec b = left >= kLanes ? load(bias + start) : loadPart(bias + start, left);
    for (long r = 0; r < rows; r++) {
      float *at = tile.values + r * kTileColumns + start;
      store(at, load(at) + b);
    }
  }
}

MLXCEL_INLINE void multiplyBy(Tile &tile, const Tile &factor, long rows) {
  for (long i = 0; i < rows * kTileColumns; i += kLanes)
    store(tile.values + i, load(tile.values + i) * load(factor.values + i));
}

/// Writes a tile, plus the residual, to its place in the result.
MLXCEL_INLINE void finish(const LinearTask &task, const Tile &tile, long row, long rows,
                          long column,
                          long columns) {
  for (long r = 0; r < rows; r++) {
    const long place = (row + r) * task.outputs + column;
    const float *from = tile.values + r * kTileColumns;
    for (int v = 0; v < kTileVectors; v++) {
      const long start = v * kLanes;
      const long left = columns - start;
      if (left <= 0) break;
      Vec x = load(from + start);
      if (left >= kLanes) {
        if (task.residual) x += load(task.residual + place + start);
        store(task.result + place + start, x);
      } else {
        if (task.residual) x += loadPart(task.residual + place + start, left);
        storePart(task.result + place + start, x, left);
      }
    }
  }
}

/// What a tile of sums becomes once they are complete.
MLXCEL_INLINE void conclude(const LinearTask &task, Tile *tiles, long row, long rows, long panel) {
  const long column = panel * kTileColumns;
  const long left = task.outputs - column;
  const long columns = left < kTileColumns ? left : kTileColumns;
  if (task.weights.bias) addBias(tiles[0], task.weights.bias + column, rows, columns);
  activateInPlace(task.activation, tiles[0].values, rows * kTileColumns);
  if (task.up.packed) {
    if (task.up.bias) addBias(tiles[1], task.up.bias + column, rows, columns);
    multiplyBy(tiles[0], tiles[1], rows);
  }
  finish(task, tiles[0], row, rows, column, columns);
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
  Tile *const tiles = reinterpret_cast<Tile *>(mlxcel::threadScratch(
      mlxcel::Scratch::kernel,
          tile_count * kTileRows * kTileColumns + kTileRows * (depth + kLanes)));
  float *const copy = tiles[tile_count].values;

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
        multiply(elementsOf(count), x.values, x.stride, task.weights.packed + place, kTileColumns, at[0].values,
                 kTileColumns);
        if (task.up.packed)
          multiply(elementsOf(count), x.values, x.stride, task.up.packed + place, kTileColumns, at[1].values,
                   kTileColumns);
        if (complete) conclude(task, at, row, rows, panel);
        if (passes > 1) at += matrices;
      }
    }
  }
}

} // namespace
