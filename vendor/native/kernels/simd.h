// Vectors of floats, as wide as the instruction set that the including file is compiled for.
//
// The files that include this are compiled once per instruction set. They must not use templates or
// inline functions of the standard library: the linker keeps one copy of those, and it could be one
// that needs instructions which the running CPU lacks.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kTileRows = 12; // 24 of 32 registers accumulate
constexpr int kTileVectors = 2;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
constexpr int kTileRows = 6; // 12 of 16 registers accumulate
constexpr int kTileVectors = 2;
#elif defined(__aarch64__)
constexpr int kLanes = 4;
constexpr int kTileRows = 6; // 24 of 32 registers accumulate
constexpr int kTileVectors = 4;
#else
constexpr int kLanes = 4;
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;
#endif

/// Columns of one tile of a matrix product, and of one panel of packed weights.
constexpr int kTileColumns = kLanes * kTileVectors;

#define MLXCEL_INLINE static inline __attribute__((always_inline))

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVec __attribute__((vector_size(4 * kLanes)));
typedef float UnalignedVec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

MLXCEL_INLINE Vec load(const float *from) { return *reinterpret_cast<const UnalignedVec *>(from); }
MLXCEL_INLINE void store(float *to, Vec x) { *reinterpret_cast<UnalignedVec *>(to) = x; }
MLXCEL_INLINE Vec broadcast(float x) { return x - Vec{}; }
MLXCEL_INLINE Vec select(IntVec mask, Vec yes, Vec no) { return mask ? yes : no; }
MLXCEL_INLINE Vec maximum(Vec a, Vec b) { return a > b ? a : b; }
MLXCEL_INLINE Vec masked(Vec x, int32_t mask) { return (Vec)((IntVec)x & mask); }
MLXCEL_INLINE Vec absolute(Vec x) { return masked(x, 0x7fffffff); }

/// a b + c, rounded once.
MLXCEL_INLINE Vec multiplyAdd(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (Vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  typedef double Wide __attribute__((vector_size(8 * kLanes)));
  return __builtin_convertvector(__builtin_convertvector(a, Wide) *
                                         __builtin_convertvector(b, Wide) +
                                     __builtin_convertvector(c, Wide),
                                 Vec);
#endif
}

/// The first `count` elements of x, `other` behind them.
MLXCEL_INLINE Vec firstLanes(Vec x, long count, float other) {
  IntVec lanes;
  for (int i = 0; i < kLanes; i++) lanes[i] = i;
  return select(lanes < (int32_t)count, x, broadcast(other));
}

/// The first `count` elements, zeros behind them.
MLXCEL_INLINE Vec loadPart(const float *from, long count) {
  Vec x{};
  for (long i = 0; i < count; i++) x[i] = from[i];
  return x;
}

MLXCEL_INLINE void storePart(float *to, Vec x, long count) {
  for (long i = 0; i < count; i++) to[i] = x[i];
}

MLXCEL_INLINE float sumOfLanes(Vec x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)x);
#endif
  float lanes[kLanes];
  store(lanes, x);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
  return lanes[0];
}

MLXCEL_INLINE float maximumOfLanes(Vec x) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps((__m512)x);
#endif
  float lanes[kLanes];
  store(lanes, x);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++)
      lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  return lanes[0];
}

/// 1.5 * 2^23: added to a small number, it leaves the nearest integer in the low bits.
constexpr float kRounder = 12582912.0f;

/// 2^n for the integer n that `rounded` = n + kRounder holds, -126 <= n <= 127.
MLXCEL_INLINE Vec powerOfTwo(Vec rounded) { return (Vec)(((IntVec)rounded + 127) << 23); }

/// 2^x for x <= 0, relative error 2e-7; 0 where the result would be denormal. NaN stays NaN.
MLXCEL_INLINE Vec exp2OfNegative(Vec x) {
  const Vec rounded = x + kRounder;
  const Vec r = x - (rounded - kRounder);
  // Minimax on [-1/2, 1/2], 7.5e-8.
  Vec p = r * 1.32763793e-3f + 9.6755636e-3f;
  p = p * r + 5.55071373e-2f;
  p = p * r + 2.40221193e-1f;
  p = p * r + 6.93146967e-1f;
  p = p * r + 1.00000007f;
  return select(x < -126.0f, Vec{}, p * powerOfTwo(rounded));
}

/// e^x as (1 + rest) · power: not rounded to one number where more is to be multiplied.
struct Exponential {
  Vec rest;
  Vec power; // 2^n
};

constexpr float kLog2OfE = 1.44269504f;
/// ln 2 in two parts: n times the first one is exact.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;
/// Below this e^x is denormal.
constexpr float kSmallestExponent = -87.3365f;

/// e^r · 2^n for the integer n that `rounded` = n + kRounder holds and |r| <= ln2 / 2.
MLXCEL_INLINE Exponential exponential(Vec rounded, Vec r) {
  // Minimax of (e^r - 1) / r, 1.9e-9.
  Vec p = r * 1.38368351e-3f + 8.37482405e-3f;
  p = p * r + 4.16682262e-2f;
  p = p * r + 1.66664201e-1f;
  p = p * r + 4.99999921e-1f;
  p = p * r + 1.00000004f;
  return {p * r, powerOfTwo(rounded)};
}

/// e^x for x <= 0, relative error 2e-7; 0 where the result would be denormal.
MLXCEL_INLINE Vec expOfNegative(Vec x) {
  const Vec rounded = x * kLog2OfE + kRounder;
  const Vec n = rounded - kRounder;
  const Exponential e = exponential(rounded, (x - n * kLn2High) - n * kLn2Low);
  return select(x < kSmallestExponent, Vec{}, (1.0f + e.rest) * e.power);
}

/// e^(a b) for kSmallestExponent <= a b <= 0: the product is not rounded.
MLXCEL_INLINE Exponential expOfProduct(Vec a, Vec b) {
  const Vec rounded = a * b * kLog2OfE + kRounder;
  const Vec n = rounded - kRounder;
  return exponential(rounded, multiplyAdd(a, b, n * -kLn2High) - n * kLn2Low);
}

} // namespace
