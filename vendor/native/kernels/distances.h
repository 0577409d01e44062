// Scores of contents with distances, as disentangled attention adds them to those of contents.
#pragma once

#include "kernel_table.h"
#include "tile.h"
#include "transpose.h"

namespace {

using mlxcel::Distances;
using mlxcel::Matrix;

/// Vectors of adjacent distances from a query to a key, transposed: [head_dim, stride] each.
struct PackedDistances {
  float *keys, *queries;
  long stride;
};

/// Packs `count` distances from `first` on; columns behind them meet only keys behind the last one.
MLXCEL_INLINE void packDistances(const Distances &distances, long head_dim, long first, long count,
                                 const PackedDistances &packed) {
  const int *rows = distances.rows + first;
  const auto pack = [&](const Matrix &table, float *to) {
    for (long column = 0; column < count; column += kLanes)
      packColumns([&](long i) { return table.values + rows[column + i] * table.stride; },
                  count - column, head_dim, to + column, packed.stride);
  };
  pack(distances.keys, packed.keys);
  pack(distances.queries, packed.queries);
}

/// One panel of keys for a tile of queries. From one query to the next, distances are one column
/// less.
struct DistancePanel {
  long depth;
  const float *keys;    // [depth, kTileColumns]
  const float *queries; // [depth, stride], at the distance from the first query to the first key
  long stride;
  float scale;           // of keys · queries
  const float *products; // of queries and keys of distances, at the same distance
  float *scores;
  long score_stride; // of the products, too
};

/// Adds both scores of contents and distances to those of a tile.
template <int ROWS> void addDistances(const DistancePanel &panel) {
  Vec sums[ROWS][kTileVectors];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; v++) sums[r][v] = Vec{};
  for (long k = 0; k < panel.depth; k++) {
    const float *query = panel.queries + k * panel.stride;
    Vec keys[kTileVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; v++)
      keys[v] = load(panel.keys + k * kTileColumns + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
      for (int v = 0; v < kTileVectors; v++) sums[r][v] += keys[v] * load(query - r + v * kLanes);
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; v++) {
      float *score = panel.scores + r * panel.score_stride + v * kLanes;
      const float *product = panel.products + r * (panel.score_stride - 1) + v * kLanes;
      store(score, load(score) + load(product) + sums[r][v] * panel.scale);
    }
}

typedef void (*AddDistances)(const DistancePanel &);

/// `addDistances` for 1 … kTileRows queries.
MLXCEL_INLINE AddDistances addDistancesOf(long rows) {
  static constexpr AddDistances table[] = {
      addDistances<1>,  addDistances<2>,  addDistances<3>,
      addDistances<4>,  addDistances<5>,  addDistances<6>,
#if defined(__AVX512F__)
      addDistances<7>,  addDistances<8>,  addDistances<9>,
      addDistances<10>, addDistances<11>, addDistances<12>,
#endif
  };
  static_assert(sizeof(table) / sizeof(table[0]) == kTileRows, "one per number of rows");
  return table[rows - 1];
}

} // namespace
