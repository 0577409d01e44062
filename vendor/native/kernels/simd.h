// Vectors of floats, as wide as the instruction set that the including file is compiled for.
//
// The files that include this are compiled once per instruction set. They must not use templates or
// inline functions of the standard library: the linker keeps one copy of those, and it could be one
// that needs instructions which the running CPU lacks.
#pragma once

#include <stddef.h>
#include <stdint.h>

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
  float lanes[kLanes];
  store(lanes, x);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
  return lanes[0];
}

MLXCEL_INLINE float maximumOfLanes(Vec x) {
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

/// e^(x + rest) for x <= 0 and a small rest, relative error 2e-7; 0 where the result would be
/// denormal.
MLXCEL_INLINE Vec expOfNegative(Vec x, Vec rest) {
  const Vec rounded = x * 1.44269504f + kRounder;
  const Vec n = rounded - kRounder;
  // ln 2 in two parts, so that n times the first one is exact.
  Vec r = x - n * 0.693359375f;
  r = (r + n * 2.12194440e-4f) + rest;
  // Minimax on [-ln2/2, ln2/2], 1.9e-9.
  Vec p = r * 1.38368351e-3f + 8.37482405e-3f;
  p = p * r + 4.16682262e-2f;
  p = p * r + 1.66664201e-1f;
  p = p * r + 4.99999921e-1f;
  p = p * r + 1.00000004f;
  p = p * r + 1.0f;
  return select(x < -87.3365f, Vec{}, p * powerOfTwo(rounded));
}

} // namespace
