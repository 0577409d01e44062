// The innermost loop of every matrix product here: a tile of results that stays in registers.
#pragma once

#include "simd.h"

namespace {

/// sum + a b, for elements that are floats.
struct MultiplyAdd {
  static constexpr long kInputs = 1;
  MLXCEL_INLINE Vec spread(const float *a) { return broadcast(*a); }
  MLXCEL_INLINE Vec apply(Vec sum, Vec a, Vec b) { return sum + a * b; }
};

#if defined(__AVX512BF16__)
/// sum + a[0] b[0] + a[1] b[1], for elements that hold two bf16 numbers.
struct PairMultiplyAdd {
  static constexpr long kInputs = 2;
  MLXCEL_INLINE Vec spread(const float *a) {
    int32_t pair; // a float of these bits could be NaN
    __builtin_memcpy(&pair, a, sizeof(pair));
    return (Vec)_mm512_set1_epi32(pair);
  }
  MLXCEL_INLINE Vec apply(Vec sum, Vec a, Vec b) {
    return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
  }
};
#endif

/**
 * out [ROWS, VECTORS * kLanes] = a [ROWS, depth] · b [depth, VECTORS * kLanes],
 * or with ADD added to what is there.
 * The sum over depth runs in order, so a row's numbers do not depend on how many rows there are,
     nor on
 * the parts that the depth is cut into.
 */
template <class Multiply, int ROWS, int VECTORS, bool ADD>
void product(long depth, const float *a, long a_stride, const float *b, long b_stride, float *out,
             long out_stride) {
  // Three rows per pointer: base, base + stride and base + 2 * stride are all addressing modes.
  constexpr int kPointers = (ROWS + 2) / 3;
  const float *rows[kPointers];
  for (int i = 0; i < kPointers; i++) rows[i] = a + 3 * i * a_stride;
  Vec sums[ROWS][VECTORS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++)
      sums[r][v] = ADD ? load(out + r * out_stride + v * kLanes) : Vec{};
  for (long k = 0; k < depth; k++, b += b_stride) {
    Vec columns[VECTORS];
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) columns[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      const Vec value = Multiply::spread(rows[r / 3] + k + (r % 3) * a_stride);
#pragma GCC unroll 16
      for (int v = 0; v < VECTORS; v++) sums[r][v] = Multiply::apply(sums[r][v], value, columns[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
    for (int v = 0; v < VECTORS; v++) store(out + r * out_stride + v * kLanes, sums[r][v]);
}

typedef void (*Product)(long, const float *, long, const float *, long, float *, long);

/// The product for 1 … kTileRows rows, by M, of the first V vectors of the columns.
template <class M, bool ADD, int V = kTileVectors> MLXCEL_INLINE Product productOf(long rows) {
  static constexpr Product table[] = {
      product<M, 1, V, ADD>,  product<M, 2, V, ADD>,  product<M, 3, V, ADD>,
      product<M, 4, V, ADD>,  product<M, 5, V, ADD>,  product<M, 6, V, ADD>,
#if defined(__AVX512F__)
      product<M, 7, V, ADD>,  product<M, 8, V, ADD>,  product<M, 9, V, ADD>,
      product<M, 10, V, ADD>, product<M, 11, V, ADD>, product<M, 12, V, ADD>,
#endif
  };
  static_assert(sizeof(table) / sizeof(table[0]) == kTileRows, "one product per number of rows");
  return table[rows - 1];
}

/// Rows of the next tile where `left` are to go: tiles are as even as possible.
MLXCEL_INLINE long nextTileRows(long left) {
  const long tiles = (left + kTileRows - 1) / kTileRows;
  return (left + tiles - 1) / tiles;
}

} // namespace
