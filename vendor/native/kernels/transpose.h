// Transposing a square of floats in registers.
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
  const Vec low =
      __builtin_shuffle(a, b, IntVec{(LANE & STEP ? kLanes + LANE - STEP : LANE)...});
  const Vec high =
      __builtin_shuffle(a, b, IntVec{(LANE & STEP ? kLanes + LANE : LANE + STEP)...});
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

} // namespace
