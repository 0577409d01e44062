// The innermost loop of every matrix product here: a tile of results that stays in registers.
#pragma once

#include "simd.h"

namespace {

/**
 * out [ROWS, kTileColumns] = a [ROWS, depth] · b [depth, kTileColumns],
     or with ADD added to what is there.
 * The sum over depth runs in order, so a row's numbers do not depend on how many rows there are,
     nor on
 * the parts that the depth is cut into.
 */
template <int ROWS, bool ADD>
void product(long depth, const float *a, long a_stride, const float *b, long b_stride, float *out,
             long out_stride) {
  // Three rows per pointer: base, base + stride and base + 2 * stride are all addressing modes.
  constexpr int kPointers = (ROWS + 2) / 3;
  const float *rows[kPointers];
  for (int i = 0; i < kPointers; i++) rows[i] = a + 3 * i * a_stride;
  Vec sums[ROWS][kTileVectors];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; v++)
      sums[r][v] = ADD ? load(out + r * out_stride + v * kLanes) : Vec{};
  for (long k = 0; k < depth; k++, b += b_stride) {
    Vec columns[kTileVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; v++) columns[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      const Vec value = broadcast(rows[r / 3][k + (r % 3) * a_stride]);
#pragma GCC unroll 16
      for (int v = 0; v < kTileVectors; v++) sums[r][v] += value * columns[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; v++) store(out + r * out_stride + v * kLanes, sums[r][v]);
}

typedef void (*Product)(long, const float *, long, const float *, long, float *, long);

/// The product for 1 … kTileRows rows.
template <bool ADD = false> MLXCEL_INLINE Product productOf(long rows) {
  static constexpr Product table[] = {
      product<1, ADD>, product<2, ADD>,  product<3, ADD>,  product<4, ADD>,
      product<5, ADD>, product<6, ADD>,
#if defined(__AVX512F__)
      product<7, ADD>, product<8, ADD>,  product<9, ADD>,  product<10, ADD>,
      product<11, ADD>, product<12, ADD>,
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
