#include "vectorized.h"

namespace mlxcel {
extern const KernelTable avx512Kernels = MLXCEL_KERNEL_TABLE("avx512");
}
