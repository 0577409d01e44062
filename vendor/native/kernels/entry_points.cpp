#include "entry_points.h"

#include "pool.h"
#include "processor.h"

namespace mlxcel {

namespace mx = mlx::core;

void require(bool holds, const std::string &what) {
  if (!holds) throw std::invalid_argument(what);
}

void requireFloat32(const mx::array &array, const char *name) {
  require(array.dtype() == mx::float32, std::string(name) + " must be float32");
}

int widthOf(const mx::array &array, const char *name) {
  requireFloat32(array, name);
  require(array.ndim() == 2, std::string(name) + " must have two axes");
  return array.shape(1);
}

void requireVector(mlx_array array, int length, const char *name) {
  if (!array.ctx) return;
  const mx::array &vector = mlx_array_get_(array);
  requireFloat32(vector, name);
  require(vector.ndim() == 1 && vector.shape(0) == length,
          std::string(name) + " must be a vector of " + std::to_string(length));
}

Activation activationOf(int number) {
  require(number >= 0 && number < kActivations, "unknown activation " + std::to_string(number));
  return static_cast<Activation>(number);
}

void requirePacked(const mx::array &packed, int inputs, int outputs, const char *name) {
  const int columns = static_cast<int>(kernels().panel_columns);
  requireFloat32(packed, name);
  require(packed.ndim() == 3 && packed.shape(2) == columns,
          std::string(name) + " must be packed for " + kernels().name);
  const int each = static_cast<int>(kernels().element_inputs);
  require(packed.shape(1) == (inputs + each - 1) / each &&
              packed.shape(0) == (outputs + columns - 1) / columns,
          std::string(name) + " must map " + std::to_string(inputs) + " inputs to " +
              std::to_string(outputs) + " outputs");
}

std::vector<int> rowLengths(const int *lengths, int rows, int tokens) {
  std::vector<int> copy(lengths, lengths + rows);
  long total = 0;
  for (int length : copy) {
    require(length >= 0, "a row has a negative length");
    total += length;
  }
  require(total == tokens, "the rows have " + std::to_string(total) + " tokens, the matrix has " +
                               std::to_string(tokens));
  return copy;
}

} // namespace mlxcel

extern "C" {

void mlxcel_set_kernel_threads(int count) { mlxcel::setThreads(count); }

int mlxcel_kernel_threads(void) { return mlxcel::threads(); }

// Weights that were packed for another instruction set are refused afterwards.
bool mlxcel_use_instruction_set(const char *name) { return mlxcel::useInstructionSet(name); }

// The same. They are f32 arrays of other bits: two bf16 numbers in each element.
bool mlxcel_use_bf16_weights(void) { return mlxcel::useBf16Weights(); }

const char *mlxcel_instruction_set(void) { return mlxcel::kernels().name; }
}
