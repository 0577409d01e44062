#include "primitive.h"

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

namespace mlxcel {
namespace {

namespace mx = mlx::core;

/// Copies elements of 4 bytes into row-major order.
void copyDense(const uint32_t *from, const mx::Shape &shape, const mx::Strides &strides,
               size_t axis, uint32_t *&to) {
  if (axis == shape.size()) {
    *to++ = *from;
    return;
  }
  for (int i = 0; i < shape[axis]; i++)
    copyDense(from + i * strides[axis], shape, strides, axis + 1, to);
}

/// Bytes to ask for. MLX keeps freed blocks, but gives one out again only where about its own size
/// is asked for, which no other number of tokens does. With powers of two nearly every result finds
/// one; new ones cost a page fault for every 4 KiB. Of large ones MLX keeps too few to choose from.
/// Operations of MLX itself do not take over the memory of such an input: the sizes differ too
/// much.
size_t blockBytes(size_t bytes, Lifetime lifetime) {
  constexpr size_t kSmallest = 64 << 10, kLargest = 8 << 20;
  const bool rounded = lifetime == Lifetime::brief && bytes > kSmallest && bytes < kLargest;
  return rounded ? std::bit_ceil(bytes) : bytes;
}

class CpuKernel : public mx::Primitive {
public:
  CpuKernel(mx::Stream stream, Kernel kernel) : Primitive(stream), kernel_(std::move(kernel)) {}

  const char *name() const override { return kernel_.name; }

  void eval_cpu(const std::vector<mx::array> &inputs, std::vector<mx::array> &outputs) override {
    mx::array &out = outputs[0];
    allocate(out, inputs);
    if (out.size() == 0) return;
    auto &encoder = mx::cpu::get_command_encoder(stream());
    std::vector<Operand> operands;
    for (const mx::array &input : inputs) operands.push_back(operand(input, encoder));
    encoder.dispatch([body = kernel_.body, operands = std::move(operands),
                      result = out.data<float>()] { body(operands, result); });
  }

  void eval_gpu(const std::vector<mx::array> &, std::vector<mx::array> &) override {
    throw std::runtime_error(std::string(kernel_.name) + " runs on the CPU only");
  }

private:
  void allocate(mx::array &out, const std::vector<mx::array> &inputs) const {
    if (kernel_.reusable != kAbsent) {
      const mx::array &input = inputs[kernel_.reusable];
      if (input.is_donatable() && input.flags().row_contiguous && input.data_size() == out.size()) {
        out.copy_shared_buffer(input);
        return;
      }
    }
    out.set_data(mx::allocator::malloc(blockBytes(out.nbytes(), kernel_.lifetime)));
  }

  Operand operand(const mx::array &input, mx::cpu::CommandEncoder &encoder) const {
    const long width = input.ndim() > 0 ? input.shape(-1) : 1;
    if (input.flags().row_contiguous || input.size() == 0) return {input.data<uint32_t>(), width};
    if (kernel_.rows == Rows::strided && input.ndim() == 2 && input.strides(1) == 1)
      return {input.data<uint32_t>(), static_cast<long>(input.strides(0))};
    mx::array dense(input.shape(), input.dtype(), nullptr, {});
    dense.set_data(mx::allocator::malloc(dense.nbytes()));
    encoder.add_temporary(dense);
    encoder.dispatch(
        [from = input.data<uint32_t>(), shape = input.shape(), strides = input.strides(),
         to = dense.data<uint32_t>()]() mutable { copyDense(from, shape, strides, 0, to); });
    return {dense.data<uint32_t>(), width};
  }

  Kernel kernel_;
};

} // namespace

mx::array kernelArray(Kernel kernel, mx::Shape shape, mx::Stream stream,
                      std::vector<mx::array> inputs) {
  return mx::array(std::move(shape), mx::float32,
                   std::make_shared<CpuKernel>(stream, std::move(kernel)), std::move(inputs));
}

} // namespace mlxcel
