// What the machine offers.
#pragma once

namespace mlxcel {

/// Cores that this process may use; two threads of one core count once.
int physicalCores();

/// Chooses the kernels of an instruction set, by the name of its table; false where the CPU lacks
/// it.
bool useInstructionSet(const char *name);

/// Chooses the kernels that pack weights as bf16; false where the CPU does not multiply that.
bool useBf16Weights();

} // namespace mlxcel
