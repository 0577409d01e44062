// Norms, rotary positions, embeddings, pooling and activations.
#include <cmath>
#include <limits>

#include "entry_points.h"
#include "pool.h"
#include "schedule.h"

using namespace mlxcel;
namespace mx = mlx::core;

namespace {

mx::array normArray(const char *name, const mx::array &x, mlx_array weight, mlx_array bias,
                    Norm norm, mx::Stream stream) {
  const int width = widthOf(x, "x");
  require(width > 0, "x must not have empty rows");
  requireVector(weight, width, "weight");
  requireVector(bias, width, "bias");
  const int rows = x.shape(0);
  Inputs inputs;
  inputs.add(x);
  const int weight_at = inputs.addOptional(weight);
  const int bias_at = inputs.addOptional(bias);
  const KernelTable &table = kernels();
  const auto body = [&table, norm, rows, width, weight_at, bias_at](const auto &in, float *result) {
    Norm with = norm;
    with.weight = floatsAt(in, weight_at);
    with.bias = floatsAt(in, bias_at);
    runNorm(table, with, in[0].floats(), rows, width, result);
  };
  return kernelArray({name, Rows::dense, body, 0}, x.shape(), stream, inputs.take());
}

/// A look-up: where its indices and its table are, and how many rows the table has.
struct LookUp {
  int indices, table;
  int rows;
  bool one_for_all;
};

LookUp lookUp(Inputs &inputs, mlx_array indices, mlx_array table, int tokens, int width) {
  const mx::array &ids = mlx_array_get_(indices);
  const mx::array &values = mlx_array_get_(table);
  require(ids.dtype() == mx::int32 && ids.ndim() == 1, "indices must be an int32 vector");
  require(ids.shape(0) == tokens || ids.shape(0) == 1,
          "indices must have one per token, or one for all");
  require(widthOf(values, "table") == width, "tables must have the same width");
  return {inputs.add(ids), inputs.add(values), values.shape(0), ids.shape(0) == 1};
}

/// result = the rows that the look-ups pick, added up in order.
void embedToken(const KernelTable &table, const std::vector<LookUp> &look_ups,
                const std::vector<Operand> &in, long token, long width, float *result) {
  for (size_t i = 0; i < look_ups.size(); i++) {
    const LookUp &each = look_ups[i];
    const int index = in[each.indices].ints()[each.one_for_all ? 0 : token];
    if (index < 0 || index >= each.rows) {
      // Callers check indices; one that slips through must neither read foreign memory nor look
      // like a result.
      for (long c = 0; c < width; c++) result[c] = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    const float *row = in[each.table].floats() + index * width;
    if (i == 0) std::copy(row, row + width, result);
    else table.add(result, row, width, result);
  }
}

} // namespace

extern "C" {

int mlxcel_layer_norm(mlx_array *res, const mlx_array x, const mlx_array weight,
                      const mlx_array bias, float eps, const mlx_stream s) {
  return answer(res, [&] {
    return normArray("mlxcel_layer_norm", mlx_array_get_(x), weight, bias,
                     {nullptr, nullptr, eps, true}, mlx_stream_get_(s));
  });
}

int mlxcel_rms_norm(mlx_array *res, const mlx_array x, const mlx_array weight, float eps,
                    const mlx_stream s) {
  return answer(res, [&] {
    return normArray("mlxcel_rms_norm", mlx_array_get_(x), weight, mlx_array{nullptr},
                     {nullptr, nullptr, eps, false}, mlx_stream_get_(s));
  });
}

// Component i of a head turns with component i + half; cos and sin [rows, half], x [rows, heads * 2
// * half].
int mlxcel_rope(mlx_array *res, const mlx_array x, const mlx_array cos, const mlx_array sin,
                const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &input = mlx_array_get_(x);
    const int width = widthOf(input, "x");
    const int half = widthOf(mlx_array_get_(cos), "cos");
    const int rows = input.shape(0);
    require(half > 0 && width % (2 * half) == 0, "x must hold whole heads");
    require(widthOf(mlx_array_get_(sin), "sin") == half && mlx_array_get_(sin).shape(0) == rows &&
                mlx_array_get_(cos).shape(0) == rows,
            "cos and sin must have a row per row of x");
    const int heads = width / (2 * half);
    const mx::Stream stream = mlx_stream_get_(s);
    const KernelTable &table = kernels();
    const auto body = [&table, rows, heads, half, width](const auto &in, float *result) {
      forRanges(rows, 4.0 * width, [&](long first, long last) {
        const Matrix part = {in[0].floats() + first * in[0].stride, in[0].stride};
        table.rope(part, in[1].floats() + first * half, in[2].floats() + first * half, last - first,
                   heads, half, result + first * width);
      });
    };
    const auto dense = [&](mlx_array angles) {
      return mx::contiguous(mlx_array_get_(angles), false, stream);
    };
    return kernelArray({"mlxcel_rope", Rows::strided, body}, input.shape(), stream,
                       {input, dense(cos), dense(sin)});
  });
}

// Sums of table rows per token, the second and third look-up optional; normalised where there is a
// norm_weight.
int mlxcel_embed(mlx_array *res, const mlx_array ids, const mlx_array table,
                 const mlx_array second_ids, const mlx_array second_table,
                 const mlx_array third_ids, const mlx_array third_table,
                 const mlx_array norm_weight, const mlx_array norm_bias, float eps,
                 const mlx_stream s) {
  return answer(res, [&] {
    const int width = widthOf(mlx_array_get_(table), "table");
    const int tokens = mlx_array_get_(ids).ndim() == 1 ? mlx_array_get_(ids).shape(0) : 0;
    Inputs inputs;
    std::vector<LookUp> look_ups = {lookUp(inputs, ids, table, tokens, width)};
    if (second_ids.ctx) look_ups.push_back(lookUp(inputs, second_ids, second_table, tokens, width));
    if (third_ids.ctx) look_ups.push_back(lookUp(inputs, third_ids, third_table, tokens, width));
    requireVector(norm_weight, width, "norm weight");
    requireVector(norm_bias, width, "norm bias");
    const int weight_at = inputs.addOptional(norm_weight);
    const int bias_at = inputs.addOptional(norm_bias);
    const KernelTable &kernel = kernels();
    const auto body = [&kernel, look_ups, tokens, width, weight_at, bias_at, eps](const auto &in,
                                                                                  float *result) {
      const Norm norm = {floatsAt(in, weight_at), floatsAt(in, bias_at), eps, true};
      forRanges(tokens, 12.0 * width, [&](long first, long last) {
        for (long token = first; token < last; token++) {
          float *row = result + token * width;
          embedToken(kernel, look_ups, in, token, width, row);
          if (norm.weight) kernel.norm(norm, row, 1, width, row);
        }
      });
    };
    return kernelArray({"mlxcel_embed", Rows::dense, body}, {tokens, width}, mlx_stream_get_(s),
                       inputs.take());
  });
}

// Σ weights[token] x[token] over the tokens of each row: x [tokens, width], weights [tokens] ->
// [rows, width].
int mlxcel_pool(mlx_array *res, const mlx_array x, const mlx_array weights, const int *lengths,
                int rows, const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &input = mlx_array_get_(x);
    const int width = widthOf(input, "x");
    requireVector(weights, input.shape(0), "weights");
    require(rows == 0 || lengths, "lengths are missing");
    std::vector<long> starts = {0};
    for (int length : rowLengths(lengths, rows, input.shape(0)))
      starts.push_back(starts.back() + length);
    const KernelTable &table = kernels();
    const auto body = [&table, starts, rows, width](const auto &in, float *result) {
      forRanges(rows, 2.0 * width * starts.back() / rows, [&](long first, long last) {
        for (long row = first; row < last; row++)
          table.weighted_sum(in[0].floats() + starts[row] * width, in[1].floats() + starts[row],
                             starts[row + 1] - starts[row], width, result + row * width);
      });
    };
    return kernelArray({"mlxcel_pool", Rows::dense, body}, {rows, width}, mlx_stream_get_(s),
                       {input, mlx_array_get_(weights)});
  });
}

int mlxcel_activate(mlx_array *res, const mlx_array x, int activation, const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &input = mlx_array_get_(x);
    requireFloat32(input, "x");
    const KernelTable &table = kernels();
    const auto body = [&table, kind = activationOf(activation),
                       size = static_cast<long>(input.size())](const auto &in, float *result) {
      forRanges(size, 40, [&](long first, long last) {
        table.activate(kind, in[0].floats() + first, last - first, result + first);
      });
    };
    return kernelArray({"mlxcel_activate", Rows::dense, body}, input.shape(), mlx_stream_get_(s),
                       {input});
  });
}
}
