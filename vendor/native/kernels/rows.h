// Kernels that work on each row alone.
#pragma once

#include "activation.h"
#include "kernel_table.h"
#include "simd.h"

namespace {

/// Σ f(x[i]) over a row; four sums at a time, as one addition waits for the one before it.
template <class F> MLXCEL_INLINE float sumOf(const float *x, long width, F f) {
  Vec sums[4] = {};
  long i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes)
    for (int j = 0; j < 4; j++) sums[j] += f(load(x + i + j * kLanes));
  for (; i + kLanes <= width; i += kLanes) sums[0] += f(load(x + i));
  float rest = 0;
  for (; i < width; i++) rest += f(broadcast(x[i]))[0];
  return sumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

MLXCEL_INLINE void normalize(const mlxcel::Norm &norm, const float *x, long width, float *result) {
  const float mean = norm.centered ? sumOf(x, width, [](Vec v) { return v; }) / width : 0;
  const float squares = sumOf(x, width, [mean](Vec v) { return (v - mean) * (v - mean); });
  const float factor = 1.0f / __builtin_sqrtf(squares / width + norm.eps);
  long i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    Vec y = (load(x + i) - mean) * factor;
    if (norm.weight) y *= load(norm.weight + i);
    if (norm.bias) y += load(norm.bias + i);
    store(result + i, y);
  }
  for (; i < width; i++) {
    float y = (x[i] - mean) * factor;
    if (norm.weight) y *= norm.weight[i];
    if (norm.bias) y += norm.bias[i];
    result[i] = y;
  }
}

void norm(const mlxcel::Norm &norm, const float *x, long rows, long width, float *result) {
  for (long row = 0; row < rows; row++)
    normalize(norm, x + row * width, width, result + row * width);
}

void rope(const mlxcel::Matrix &x, const float *cos, const float *sin, long rows, long heads,
          long half, float *result) {
  for (long row = 0; row < rows; row++) {
    const float *c = cos + row * half;
    const float *s = sin + row * half;
    for (long head = 0; head < heads; head++) {
      const float *a = x.values + row * x.stride + head * 2 * half;
      const float *b = a + half;
      float *out = result + (row * heads + head) * 2 * half;
      for (long i = 0; i < half; i++) {
        out[i] = a[i] * c[i] - b[i] * s[i];
        out[i + half] = b[i] * c[i] + a[i] * s[i];
      }
    }
  }
}

void add(const float *a, const float *b, long count, float *result) {
  for (long i = 0; i < count; i++) result[i] = a[i] + b[i];
}

void weightedSum(const float *x, const float *weights, long rows, long width, float *result) {
  for (long i = 0; i < width; i++) result[i] = 0;
  for (long row = 0; row < rows; row++) {
    const float weight = weights[row];
    for (long i = 0; i < width; i++) result[i] += weight * x[row * width + i];
  }
}

void activate(mlxcel::Activation kind, const float *x, long count, float *result) {
  const long whole = count / kLanes * kLanes;
  __builtin_memcpy(result, x, count * sizeof(float));
  activateInPlace(kind, result, whole);
  if (whole == count) return;
  float lanes[kLanes];
  store(lanes, loadPart(x + whole, count - whole));
  activateInPlace(kind, lanes, kLanes);
  storePart(result + whole, load(lanes), count - whole);
}

} // namespace
