// The vectorised kernels of one instruction set. Each works on a part of the output that its caller
// chose, on the calling thread. Matrices are row-major f32; a stride counts elements between rows.
#pragma once

#include <stddef.h>

namespace mlxcel {

/// What is applied to each element of a matrix product, by the numbers that the C entry points
/// take.
enum class Activation : int { identity = 0, gelu = 1, geluTanh = 2, relu = 3, silu = 4, tanh = 5 };
constexpr int kActivations = 6;

/// Elements of a product that are summed at a time: the rows of a tile stay in the L1 cache for all
/// panels.
constexpr long kDepth = 512;

struct Matrix {
  const float *values;
  long stride;
};

/// Packed weights [outputs, inputs]: [panels, elements, columns of a panel], zeros behind the last
/// output and input. An element is one f32 number, or two bf16 numbers of adjacent inputs.
struct Weights {
  const float *packed;
  const float *bias; // [outputs] or null
};

/// activation(x · weights + bias), times (x · up + bias of up) or plus `residual` where they are
/// there.
struct LinearTask {
  Matrix x;
  long inputs;
  long outputs;
  Weights weights;
  Weights up;
  const float *residual; // [rows, outputs] or null
  Activation activation;
  float *result; // [rows, outputs]
};

/// Rows and panels of a product; the ends are exclusive.
struct Block {
  long first_row, last_row;
  long first_panel, last_panel;
};

/// (x - mean) / sqrt(variance + eps), or x / sqrt(mean(x²) + eps); then times weight, plus bias.
struct Norm {
  const float *weight; // [width] or null
  const float *bias;   // [width] or null
  float eps;
  bool centered;
};

/// What disentangled attention adds to q · k, before the scale: q · keys[row] + k · queries[row]
/// with row = rows[n], where the key lies `n` tokens after the query; n may be negative.
struct Distances {
  Matrix keys, queries; // at the first head
  const int *rows;      // or null
};

/// Some queries of one row of tokens, by all the heads that share one key/value head.
struct AttentionTask {
  Matrix q, k, v; // at the first token of the row and their first head
  long keys;      // leading tokens of the row that are keys
  /// Keys and values before those of the row, at the same head.
  Matrix past_k, past_v;
  long past;
  long heads;
  long head_dim;
  float scale;
  bool causal;
  long radius; // |query - key| <= radius; negative: unlimited
  /// Added to the scaled score of each head: [heads] rows, where a query and the key `n` tokens
  /// after it read column n, which may be negative. Or null.
  Matrix bias;
  Distances distances; // only with one head and without a past
  long first_query, last_query;
  float *result; // at the first token of the row and the first head
  long result_stride;
};

struct KernelTable {
  const char *name;
  long tile_rows;
  long panel_columns;
  long element_inputs; // 2 where weights are packed as bf16
  /// weights [outputs, inputs] -> panels `first` up to `last` of Weights.
  void (*pack)(const float *weights, long inputs, long outputs, long first, long last,
               float *packed);
  void (*linear)(const LinearTask &, const Block &);
  /// [rows, width] -> the same; `result` may be `x`.
  void (*norm)(const Norm &, const float *x, long rows, long width, float *result);
  void (*attention)(const AttentionTask &);
  /// Turns heads of 2 * half components by the angles of their row; cos and sin [rows, half].
  void (*rope)(const Matrix &x, const float *cos, const float *sin, long rows, long heads,
               long half, float *result);
  /// a + b
  void (*add)(const float *a, const float *b, long count, float *result);
  /// Σ weights[i] x[i]: [rows, width] -> [width].
  void (*weighted_sum)(const float *x, const float *weights, long rows, long width, float *result);
  void (*activate)(Activation, const float *x, long count, float *result);
};

extern const KernelTable baselineKernels;
#if defined(__x86_64__)
extern const KernelTable avx2Kernels;
extern const KernelTable avx512Kernels;
extern const KernelTable avx512Bf16Kernels;
#endif

/// The table in use: the best one for this CPU, unless another was chosen.
const KernelTable &kernels();

/// Who uses the memory of a thread: a vectorised kernel, or the schedule around it.
enum class Scratch { kernel, schedule };
/// Memory of the calling thread, aligned to 64 bytes, valid until the next call for the same user.
float *threadScratch(Scratch user, size_t floats);

} // namespace mlxcel
