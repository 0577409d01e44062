// What the C entry points share: optional inputs, checks, errors.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "mlx/c/error.h"
#include "mlx/c/private/mlx.h"

#include "primitive.h"

namespace mlxcel {

/// The inputs of a kernel, each one once; optional ones have a place only where they are there.
class Inputs {
public:
  int add(const mlx::core::array &array) {
    for (size_t i = 0; i < arrays_.size(); i++)
      if (arrays_[i].id() == array.id()) return static_cast<int>(i);
    arrays_.push_back(array);
    return static_cast<int>(arrays_.size()) - 1;
  }
  int add(mlx_array array) { return add(mlx_array_get_(array)); }
  int addOptional(mlx_array array) { return array.ctx ? add(array) : kAbsent; }

  std::vector<mlx::core::array> take() { return std::move(arrays_); }

private:
  std::vector<mlx::core::array> arrays_;
};

inline const float *floatsAt(const std::vector<Operand> &inputs, int place) {
  return place == kAbsent ? nullptr : inputs[place].floats();
}

/// Throws std::invalid_argument, the message made of what was expected of whom.
void require(bool holds, const std::string &what);
void requireFloat32(const mlx::core::array &array, const char *name);
/// The width of an f32 matrix [rows, width].
int widthOf(const mlx::core::array &array, const char *name);
/// `array` is null or an f32 vector of `length`.
void requireVector(mlx_array array, int length, const char *name);
Activation activationOf(int number);
/// Checks that packed weights map `inputs` to `outputs`.
void requirePacked(const mlx::core::array &packed, int inputs, int outputs, const char *name);
/// The ragged rows end with the last of `tokens`.
std::vector<int> rowLengths(const int *lengths, int rows, int tokens);

/// Runs `body`, which returns an array, for a C entry point.
template <class Make> int answer(mlx_array *res, const Make &make) {
  try {
    mlx_array_set_(*res, make());
  } catch (std::exception &error) {
    mlx_error("%s", error.what());
    return 1;
  }
  return 0;
}

} // namespace mlxcel
