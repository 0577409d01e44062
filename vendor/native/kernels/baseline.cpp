#include "vectorized.h"

namespace mlxcel {
extern const KernelTable baselineKernels = MLXCEL_KERNEL_TABLE("baseline");
}
