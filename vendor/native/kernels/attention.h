// softmax(q kᵀ · scale) v for some queries of one row, in blocks of keys with a running maximum and
// sum.
#pragma once

#include "distances.h"
#include "kernel_table.h"
#include "tile.h"
#include "transpose.h"

namespace {

using mlxcel::AttentionTask;
using mlxcel::Matrix;

constexpr long kKeyBlock = 512;
/// Not a power of two, so that the rows of a tile lie in different places of the L1 cache.
constexpr long kScoreStride = kKeyBlock + 2 * kTileColumns + 16;
constexpr float kLog2E = 1.44269504f;

MLXCEL_INLINE long roundUp(long n, long step) { return (n + step - 1) / step * step; }
MLXCEL_INLINE long smaller(long a, long b) { return a < b ? a : b; }
MLXCEL_INLINE long larger(long a, long b) { return a > b ? a : b; }

/// Keys `first` up to `last`, exclusive.
struct KeyRange {
  long first, last;
};

/// What a query sees; keys count from the first one of the past.
MLXCEL_INLINE KeyRange visibleKeys(const AttentionTask &task, long query) {
  const long place = task.past + query;
  KeyRange keys = {0, task.past + task.keys};
  if (task.causal) keys.last = smaller(keys.last, place + 1);
  if (task.radius >= 0) {
    keys.first = larger(keys.first, place - task.radius);
    keys.last = smaller(keys.last, place + task.radius + 1);
  }
  return keys;
}

MLXCEL_INLINE KeyRange within(const KeyRange &keys, const KeyRange &bounds) {
  return {larger(keys.first, bounds.first), smaller(keys.last, bounds.last)};
}

MLXCEL_INLINE const float *tokenOf(const Matrix &past, const Matrix &own, long past_tokens,
                                   long token) {
  return token < past_tokens ? past.values + token * past.stride
                             : own.values + (token - past_tokens) * own.stride;
}

/// The memory of one task.
struct Workspace {
  long width;    // head_dim, filled up to whole tiles
  long queries;  // of all heads
  long depth;    // head_dim, filled up to whole vectors
  float *keys;   // [kKeyBlock / kTileColumns, depth, kTileColumns]: panels of transposed keys
  float *values; // [kKeyBlock, width]
  float *query;  // [kTileRows, head_dim], times the scale
  float *scores; // [kTileRows, kScoreStride]
  float *tile;   // [kTileRows, kTileColumns]
  float *sums;   // [queries, width]: Σ weight · value so far
  float *totals; // [queries]: Σ weight
  float *maxima; // [queries]: the largest score
  PackedDistances distances; // from the last query to the first key on
  float *products;           // [kTileRows, kScoreStride]: of queries and keys of distances
};

/// Columns of packed distances: whole panels of keys, from the last query to the first one. An odd
/// number of vectors, so that their rows lie in different places of the L1 cache.
MLXCEL_INLINE long distanceColumns(const AttentionTask &task) {
  const long keys = smaller(roundUp(task.keys, kTileColumns), kKeyBlock);
  return roundUp(keys + task.last_query - task.first_query + kTileColumns, 2 * kLanes) + kLanes;
}

MLXCEL_INLINE Workspace allocate(const AttentionTask &task) {
  Workspace space{};
  space.width = roundUp(task.head_dim, kTileColumns);
  space.depth = roundUp(task.head_dim, kLanes);
  space.queries = (task.last_query - task.first_query) * task.heads;
  const bool distances = task.distances.rows;
  space.distances.stride = distances ? distanceColumns(task) : 0;
  const long packed = space.depth * space.distances.stride;
  const struct {
    float **part;
    long floats;
  } parts[] = {
      {&space.keys, space.depth * kKeyBlock},
      {&space.values, kKeyBlock * space.width},
      {&space.query, kTileRows * task.head_dim},
      {&space.scores, kTileRows * kScoreStride},
      {&space.tile, kTileRows * kTileColumns},
      {&space.sums, space.queries * space.width},
      {&space.totals, space.queries},
      {&space.maxima, space.queries},
      {&space.distances.keys, packed},
      {&space.distances.queries, packed},
      {&space.products, distances ? kTileRows * kScoreStride : 0},
  };
  long total = 0;
  for (const auto &each : parts) total += roundUp(each.floats, 16);
  float *at = mlxcel::threadScratch(mlxcel::Scratch::kernel, total);
  for (const auto &each : parts) {
    *each.part = at;
    at += roundUp(each.floats, 16);
  }
  return space;
}

MLXCEL_INLINE void packKeys(const AttentionTask &task, const KeyRange &block,
                            const Workspace &space) {
  const long count = roundUp(block.last - block.first, kTileColumns);
  for (long first = 0; first < count; first += kLanes) {
    float *panel =
        space.keys + first / kTileColumns * space.depth * kTileColumns + first % kTileColumns;
    const long token = block.first + first;
    packColumns([&](long i) { return tokenOf(task.past_k, task.k, task.past, token + i); },
                block.last - token, task.head_dim, panel, kTileColumns);
  }
}

MLXCEL_INLINE void packValues(const AttentionTask &task, const KeyRange &block, long width,
                              float *packed) {
  for (long token = block.first; token < block.last; token++, packed += width) {
    const float *value = tokenOf(task.past_v, task.v, task.past, token);
    __builtin_memcpy(packed, value, task.head_dim * sizeof(float));
    for (long d = task.head_dim; d < width; d++) packed[d] = 0;
  }
}

/// Turns the scores [seen.first, seen.last) into weights relative to `maximum`, zeros in the rest;
/// returns their sum.
MLXCEL_INLINE float weigh(float *scores, const KeyRange &seen, const KeyRange &whole,
                          float maximum_) {
  for (long i = whole.first; i < seen.first; i++) scores[i] = 0;
  Vec sum{};
  long i = seen.first;
  for (; i + kLanes <= seen.last; i += kLanes) {
    const Vec weight = exp2OfNegative(load(scores + i) - maximum_);
    store(scores + i, weight);
    sum += weight;
  }
  if (i < seen.last) {
    const Vec weight = firstLanes(exp2OfNegative(load(scores + i) - maximum_), seen.last - i, 0);
    store(scores + i, weight);
    sum += weight;
  }
  for (i = seen.last; i < whole.last; i++) scores[i] = 0;
  return sumOfLanes(sum);
}

/// Adds bias[i] to the scores [seen.first, seen.last), which are logarithms to base 2.
MLXCEL_INLINE void addBiases(float *scores, const KeyRange &seen, const float *bias) {
  long i = seen.first;
  for (; i + kLanes <= seen.last; i += kLanes)
    store(scores + i, load(scores + i) + load(bias + i) * kLog2E);
  for (; i < seen.last; i++) scores[i] += bias[i] * kLog2E;
}

MLXCEL_INLINE float largest(const float *scores, const KeyRange &seen, float start) {
  Vec best = broadcast(start);
  long i = seen.first;
  for (; i + kLanes <= seen.last; i += kLanes) best = maximum(load(scores + i), best);
  if (i < seen.last) best = maximum(firstLanes(load(scores + i), seen.last - i, start), best);
  return maximumOfLanes(best);
}

/// Some queries of one head.
struct QueryTile {
  long head;
  long first, rows;
};

/// Adds the scores with distances for packed keys, of which `keys.first` begins a panel.
MLXCEL_INLINE void addDistanceScores(const AttentionTask &task, const Workspace &space,
                                     const QueryTile &queries, const KeyRange &keys) {
  const PackedDistances &packed = space.distances;
  // The column for the last query and the first key.
  const long column = keys.first + task.last_query - queries.first - queries.rows;
  const Product multiply = productOf<MultiplyAdd, false>(queries.rows);
  const long columns = keys.last - keys.first + queries.rows - 1;
  for (long i = 0; i < columns; i += kTileColumns)
    multiply(task.head_dim, space.query, task.head_dim, packed.keys + column + i, packed.stride,
             space.products + i, kScoreStride);
  const AddDistances add = addDistancesOf(queries.rows);
  const long behind = queries.rows - 1;
  for (long key = keys.first; key < keys.last; key += kTileColumns) {
    const long i = key - keys.first + behind;
    add({task.head_dim, space.keys + key * space.depth, packed.queries + column + i, packed.stride,
         task.scale * kLog2E, space.products + i, space.scores + key, kScoreStride});
  }
}

/// The scores, as logarithms to base 2, with packed keys, of which `keys.first` begins a panel.
MLXCEL_INLINE void scoreTile(const AttentionTask &task, const Workspace &space,
                             const QueryTile &queries, const KeyRange &keys) {
  const long head_dim = task.head_dim;
  for (long r = 0; r < queries.rows; r++) {
    const float *q = task.q.values + (queries.first + r) * task.q.stride + queries.head * head_dim;
    for (long d = 0; d < head_dim; d++)
      space.query[r * head_dim + d] = q[d] * (task.scale * kLog2E);
  }
  const Product multiply = productOf<MultiplyAdd, false>(queries.rows);
  const Product multiplyFew = productOf<MultiplyAdd, false, 1>(queries.rows);
  for (long key = keys.first; key < keys.last; key += kTileColumns) {
    const Product score = keys.last - key > kLanes ? multiply : multiplyFew;
    score(head_dim, space.query, head_dim, space.keys + key * space.depth, kTileColumns,
          space.scores + key, kScoreStride);
  }
  if (task.distances.rows) addDistanceScores(task, space, queries, keys);
}

/// Adds the keys of `block`, which are packed, to the sums of a tile of queries.
MLXCEL_INLINE void attendTile(const AttentionTask &task, const Workspace &space,
                              const KeyRange &block, const QueryTile &queries) {
  const auto [head, first, rows] = queries;
  const KeyRange last = visibleKeys(task, first + rows - 1);
  const KeyRange all = {visibleKeys(task, first).first, last.last};
  KeyRange tile = within(all, block);
  if (tile.first >= tile.last) return;
  // From here on keys count from the start of the block.
  tile = {tile.first - block.first, tile.last - block.first};
  scoreTile(task, space, queries, {tile.first / kTileColumns * kTileColumns, tile.last});

  const long place = head * (task.last_query - task.first_query) + first - task.first_query;
  float corrections[kTileRows];
  for (long r = 0; r < rows; r++) {
    float *scores = space.scores + r * kScoreStride;
    const KeyRange visible = within(visibleKeys(task, first + r), block);
    KeyRange seen = {visible.first - block.first, visible.last - block.first};
    if (seen.first >= seen.last) {
      for (long i = tile.first; i < tile.last; i++) scores[i] = 0;
      corrections[r] = 1;
      continue;
    }
    if (task.bias.values)
      addBiases(scores, seen,
                task.bias.values + head * task.bias.stride + block.first - task.past - first - r);
    const float before = space.maxima[place + r];
    const float now = largest(scores, seen, before);
    corrections[r] = exp2OfNegative(broadcast(before - now))[0];
    space.totals[place + r] =
        space.totals[place + r] * corrections[r] + weigh(scores, seen, tile, now);
    space.maxima[place + r] = now;
  }

  const Product multiply = productOf<MultiplyAdd, false>(rows);
  for (long d = 0; d < space.width; d += kTileColumns) {
    multiply(tile.last - tile.first, space.scores + tile.first, kScoreStride,
             space.values + tile.first * space.width + d, space.width, space.tile, kTileColumns);
    for (long r = 0; r < rows; r++) {
      float *sums = space.sums + (place + r) * space.width + d;
      const float *added = space.tile + r * kTileColumns;
      for (int v = 0; v < kTileVectors; v++)
        store(sums + v * kLanes,
              load(sums + v * kLanes) * corrections[r] + load(added + v * kLanes));
    }
  }
}

void attention(const AttentionTask &task) {
  const Workspace space = allocate(task);
  for (long i = 0; i < space.queries * space.width; i++) space.sums[i] = 0;
  for (long i = 0; i < space.queries; i++) {
    space.totals[i] = 0;
    space.maxima[i] = -__builtin_inff();
  }
  const KeyRange keys = {visibleKeys(task, task.first_query).first,
                         visibleKeys(task, task.last_query - 1).last};
  for (long start = keys.first; start < keys.last; start += kKeyBlock) {
    const KeyRange block = {start, smaller(start + kKeyBlock, keys.last)};
    packKeys(task, block, space);
    packValues(task, block, space.width, space.values);
    if (task.distances.rows) {
      const long nearest = block.first - (task.last_query - 1);
      packDistances(task.distances, task.head_dim, nearest, block.last - task.first_query - nearest,
                    space.distances);
    }
    for (long head = 0; head < task.heads; head++) {
      long rows;
      for (long first = task.first_query; first < task.last_query; first += rows) {
        rows = nextTileRows(task.last_query - first);
        attendTile(task, space, block, {head, first, rows});
      }
    }
  }
  const long queries = task.last_query - task.first_query;
  for (long head = 0; head < task.heads; head++) {
    for (long i = 0; i < queries; i++) {
      const long place = head * queries + i;
      const float factor = 1.0f / space.totals[place];
      float *out = task.result + (task.first_query + i) * task.result_stride + head * task.head_dim;
      for (long d = 0; d < task.head_dim; d++)
        out[d] = space.sums[place * space.width + d] * factor;
    }
  }
}

} // namespace
