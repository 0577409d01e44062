#include "vectorized.h"

namespace mlxcel {
extern const KernelTable avx512Bf16Kernels = MLXCEL_KERNEL_TABLE("avx512bf16");
}
