#include "vectorized.h"

namespace mlxcel {
extern const KernelTable avx2Kernels = MLXCEL_KERNEL_TABLE("avx2");
}
