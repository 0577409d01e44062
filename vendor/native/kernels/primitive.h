// A kernel as an operation in the graph of MLX, for CPU streams.
#pragma once

#include <functional>
#include <vector>

#include "mlx/mlx.h"

#include "kernel_table.h"

namespace mlxcel {

/// An input at the time of the computation.
struct Operand {
  const void *data;
  /// Elements between rows; the elements of a row are adjacent.
  long stride;

  const float *floats() const { return static_cast<const float *>(data); }
  const int *ints() const { return static_cast<const int *>(data); }
  Matrix matrix() const { return {floats(), stride}; }
};

/// Fills the result, which is dense and row-major. Runs on the thread of the stream.
using Body = std::function<void(const std::vector<Operand> &inputs, float *result)>;

/// Whether the rows of an input may lie apart, as those of a slice of columns do.
enum class Rows { dense, strided };

/// The place of an input that does not exist.
constexpr int kAbsent = -1;

/// How long a result is needed: until the next kernels have read it, or as long as its model.
enum class Lifetime { brief, lasting };

struct Kernel {
  const char *name;
  Rows rows;
  Body body;
  /// An input of the shape of the result whose memory the result may take over, once nobody else
  /// needs it.
  int reusable = kAbsent;
  Lifetime lifetime = Lifetime::brief;
};

/// An f32 array that the kernel computes from the inputs.
mlx::core::array kernelArray(Kernel kernel, mlx::core::Shape shape, mlx::core::Stream stream,
                             std::vector<mlx::core::array> inputs);

} // namespace mlxcel
