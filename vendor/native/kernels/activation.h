// Element-wise activations. Errors are relative to the exact value, 3e-7 at most (3.5e-7 for the
// erf GELU where multiplyAdd is not one instruction); for the tanh GELU 3e-7 of the larger of the
// exact value and x/2. An e^-t below the smallest normal number counts as 0. NaN stays NaN.
#pragma once

#include "kernel_table.h"
#include "simd.h"

namespace {

/// x Φ(x), exact: with Q(t) = 1 - Φ(t) = e^(-t²/2) R(t) for t = |x| nothing cancels.
MLXCEL_INLINE Vec gelu(Vec x) {
  const Vec magnitude = absolute(x);
  // Past this e^(-t²/2) is below the smallest normal number.
  const IntVec negligible = magnitude > 13.2164f;
  const Vec t = select(negligible, broadcast(13.0f), magnitude);
  const Exponential density = expOfProduct(t * -0.5f, t);
  // R in u = 1 / (1 + 0.348 t), minimax, relative error 2.6e-8.
  const Vec denominator = t * -0.348f - 1.0f;
  const Vec u = -1.0f / denominator;
  Vec p = u * -2.88630758e-2f + 1.44603259e-1f;
  p = p * u - 2.62026512e-1f;
  p = p * u + 1.70305105e-1f;
  p = p * u - 2.87089291e-2f;
  p = p * u + 1.07915721e-1f;
  p = p * u + 1.18833665e-1f;
  p = p * u + 1.39119853e-1f;
  p = p * u + 1.38820902e-1f;
  // The roundings of the denominator and of the quotient, relative to u; they move R by 1.45 u +
  // 0.94 times that.
  const Vec lost = multiplyAdd(t, broadcast(-0.348f), -1.0f - denominator);
  const Vec error = multiplyAdd(u, lost, multiplyAdd(u, denominator, broadcast(1.0f)));
  const Vec product = p * u * t;
  const Vec tail = product + product * (density.rest + error * (u * 1.446f + 0.943f));
  return maximum(x, Vec{}) - select(negligible, Vec{}, tail * density.power);
}

MLXCEL_INLINE Vec sigmoid(Vec x) {
  const Vec e = expOfNegative(absolute(x) * -1.0f);
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
  const Vec e = expOfNegative(t * -2.0f);
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
