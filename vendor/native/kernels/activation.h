// Element-wise activations. Errors are relative to the exact value, 3e-7 at most; for the GELUs
// 3e-7 of the larger of that and x/2, and 5e-7 of the exact value for the erf form. An e^-t below
// the smallest normal number counts as 0. NaN stays NaN.
#pragma once

#include "kernel_table.h"
#include "simd.h"

namespace {

/// x Φ(x), exact: with Q(t) = 1 - Φ(t) = e^(-t²/2) R(t) for t = |x| nothing cancels.
MLXCEL_INLINE Vec gelu(Vec x) {
  const Vec t = absolute(x);
  // Past this Q(t) is below the smallest normal number; the square must not overflow.
  const Vec bounded = select(t > 14.0f, broadcast(14.0f), t);
  // t² in two parts, the first one exact.
  const Vec high = masked(bounded, ~0xfff);
  const Vec rest = (bounded - high) * (bounded + high) * -0.5f;
  const Vec density = expOfNegative(high * high * -0.5f, rest);
  // R in u = 1 / (1 + 0.35 t), minimax, relative error 2e-8.
  const Vec u = 1.0f / (bounded * 0.35f + 1.0f);
  Vec p = u * 3.63018169e-3f - 4.82688723e-2f;
  p = p * u + 1.87374919e-1f;
  p = p * u - 3.11257164e-1f;
  p = p * u + 2.03196044e-1f;
  p = p * u - 4.54433683e-2f;
  p = p * u + 1.12735641e-1f;
  p = p * u + 1.18398825e-1f;
  p = p * u + 1.40019711e-1f;
  p = p * u + 1.39614073e-1f;
  const Vec q = density * p * u;
  return x * select(x > 0.0f, 1.0f - q, q);
}

MLXCEL_INLINE Vec sigmoid(Vec x) {
  const Vec e = expOfNegative(absolute(x) * -1.0f, Vec{});
  return select(x < 0.0f, e, broadcast(1.0f)) / (1.0f + e);
}

MLXCEL_INLINE Vec silu(Vec x) { return x * sigmoid(x); }

/// x (1 + tanh(u)) / 2 with u = sqrt(2/π) (x + 0.044715 x³), and (1 + tanh(u)) / 2 = sigmoid(2u).
MLXCEL_INLINE Vec geluTanh(Vec x) {
  const Vec cubic = x * x * x * 0.044715f + x;
  return x * sigmoid(cubic * 1.59576912f);
}

MLXCEL_INLINE Vec hyperbolicTangent(Vec x) {
  const Vec t = absolute(x);
  const Vec e = expOfNegative(t * -2.0f, Vec{});
  const Vec far = (1.0f - e) / (1.0f + e);
  // Minimax of (tanh(t)/t - 1) / t² below 0.65, where the quotient above would cancel; 6.4e-9.
  const Vec s = t * t;
  Vec p = s * -5.52863365e-3f + 2.04833161e-2f;
  p = p * s - 5.3692968e-2f;
  p = p * s + 1.33308998e-1f;
  p = p * s - 3.33332629e-1f;
  const Vec near = t + t * s * p;
  const Vec magnitude = select(t > 0.625f, far, near);
  const IntVec sign = (IntVec)x & (int32_t)0x80000000;
  return (Vec)((IntVec)magnitude | sign);
}

template <mlxcel::Activation kind> MLXCEL_INLINE Vec activated(Vec x) {
  if constexpr (kind == mlxcel::Activation::gelu) return gelu(x);
  else if constexpr (kind == mlxcel::Activation::geluTanh) return geluTanh(x);
  else if constexpr (kind == mlxcel::Activation::relu) return select(x < 0.0f, Vec{}, x);
  else if constexpr (kind == mlxcel::Activation::silu) return silu(x);
  else if constexpr (kind == mlxcel::Activation::tanh) return hyperbolicTangent(x);
  else return x;
}

/// Applies an activation in place to `count` floats, a multiple of kLanes.
template <mlxcel::Activation kind> void activateLanes(float *x, long count) {
  for (long i = 0; i < count; i += kLanes) store(x + i, activated<kind>(load(x + i)));
}

MLXCEL_INLINE void activateInPlace(mlxcel::Activation kind, float *x, long count) {
  using mlxcel::Activation;
  switch (kind) {
  case Activation::identity: return;
  case Activation::gelu: return activateLanes<Activation::gelu>(x, count);
  case Activation::geluTanh: return activateLanes<Activation::geluTanh>(x, count);
  case Activation::relu: return activateLanes<Activation::relu>(x, count);
  case Activation::silu: return activateLanes<Activation::silu>(x, count);
  case Activation::tanh: return activateLanes<Activation::tanh>(x, count);
  }
}

} // namespace
