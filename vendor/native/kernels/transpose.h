// Transposing floats, in registers by squares.
#pragma once

#include <utility>

#include "simd.h"

namespace {

// Lane l of the first result is a[l], or b[l - STEP] where the bit STEP of l is set; the second one
// holds the rest.
template <int STEP, int... LANE>
MLXCEL_INLINE void exchange(Vec &a, Vec &b, std::integer_sequence<int, LANE...>) {
#if defined(__clang__)
  const Vec low = __builtin_shufflevector(a, b, (LANE & STEP ? kLanes + LANE - STEP : LANE)...);
  const Vec high = __builtin_shufflevector(a, b, (LANE & STEP ? kLanes + LANE : LANE + STEP)...);
#else
  const Vec low = __builtin_shuffle(a, b, IntVec{(LANE & STEP ? kLanes + LANE - STEP : LANE)...});
  const Vec high = __builtin_shuffle(a, b, IntVec{(LANE & STEP ? kLanes + LANE : LANE + STEP)...});
#endif
  a = low;
  b = high;
}

/// Swaps the off-diagonal blocks of size STEP, then those inside of the blocks.
template <int STEP> MLXCEL_INLINE void transposeBlocks(Vec (&rows)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i++)
    if (!(i & STEP))
      exchange<STEP>(rows[i], rows[i + STEP], std::make_integer_sequence<int, kLanes>());
  if constexpr (STEP > 1) transposeBlocks<STEP / 2>(rows);
}

MLXCEL_INLINE void transpose(Vec (&rows)[kLanes]) { transposeBlocks<kLanes / 2>(rows); }

/// Transposes vectors of `components` numbers to kLanes columns of `to`, with zeros behind the last
/// of `count` vectors, and behind the components up to whole lanes; vectorAt(i) points to vector i.
template <class VectorAt> MLXCEL_INLINE void packColumns(const VectorAt &vectorAt, long count,
                                                         long components, float *to, long stride) {
  for (long d = 0; d < components; d += kLanes) {
    Vec square[kLanes];
    const long left = components - d;
    for (long i = 0; i < kLanes; i++) {
      if (i >= count) {
        square[i] = Vec{};
        continue;
      }
      const float *from = vectorAt(i) + d;
      square[i] = left >= kLanes ? load(from) : loadPart(from, left);
    }
    transpose(square);
    for (long i = 0; i < kLanes; i++) store(to + (d + i) * stride, square[i]);
  }
}

} // namespace
