// Cuts each kernel into parts for the threads of the pool.
#pragma once

#include "kernel_table.h"

namespace mlxcel {

void packWeights(const KernelTable &table, const float *weights, long inputs, long outputs,
                 float *packed);

/// The product of all rows; with `norm` each row of the result is normalised once it is complete.
void runLinear(const KernelTable &table, const LinearTask &task, long rows, const Norm *norm);

/// The product `second` of the product `first`, whose results live only for the rows at hand:
/// `first.result` and `second.x` are not read.
void runLinearPair(const KernelTable &table, const LinearTask &first, const LinearTask &second,
                   long rows, const Norm *norm);

void runNorm(const KernelTable &table, const Norm &norm, const float *x, long rows, long width,
             float *result);

/// Token rows of q, k and v that lie end to end.
struct RaggedAttention {
  Matrix q, k, v;
  Matrix past_k, past_v;
  long past;
  const int *lengths;
  const int *attended; // leading tokens of each row that are keys
  long rows;
  long heads, kv_heads, head_dim;
  float scale;
  bool causal;
  long radius;
  Matrix bias;         // as in AttentionTask
  Distances distances; // as in AttentionTask, at the first of all heads
  float *result;       // [tokens, heads * head_dim]
  long result_stride;
};
void runAttention(const KernelTable &table, const RaggedAttention &attention);

/// Attention of what `qkv` yields: queries, keys and values of as many heads each, side by side.
/// `attention.q`, `.k` and `.v` are not read, and there is no past.
void runSelfAttention(const KernelTable &table, const LinearTask &qkv,
                      const RaggedAttention &attention);

} // namespace mlxcel
