// Linear layers with packed weights, alone and in pairs.
#include "entry_points.h"
#include "schedule.h"

using namespace mlxcel;
namespace mx = mlx::core;

namespace {

mx::array packedWeights(const mx::array &weight, mx::Stream stream) {
  const int inputs = widthOf(weight, "weight");
  const int outputs = weight.shape(0);
  require(inputs > 0 && outputs > 0, "weight must not be empty");
  const KernelTable &table = kernels();
  const int columns = static_cast<int>(table.panel_columns);
  const int each = static_cast<int>(table.element_inputs);
  const auto body = [&table, inputs, outputs](const auto &in, float *result) {
    packWeights(table, in[0].floats(), inputs, outputs, result);
  };
  return kernelArray({"mlxcel_pack", Rows::dense, body, kAbsent, Lifetime::lasting},
                     {(outputs + columns - 1) / columns, (inputs + each - 1) / each, columns},
                     stream, {weight});
}

/// Where the weights of a layer are among the inputs of its kernel.
struct Layer {
  int outputs = 0;
  Activation activation = Activation::identity;
  int weight = kAbsent, bias = kAbsent;
  int up = kAbsent, up_bias = kAbsent;
};

/// What follows the last layer.
struct Ending {
  int residual = kAbsent;
  bool normalized = false;
  int norm_weight = kAbsent, norm_bias = kAbsent;
  float eps = 0;
};

Layer addLayer(Inputs &inputs, int width, int outputs, mlx_array weight, mlx_array bias) {
  requirePacked(mlx_array_get_(weight), width, outputs, "weight");
  requireVector(bias, outputs, "bias");
  Layer layer;
  layer.outputs = outputs;
  layer.weight = inputs.add(weight);
  layer.bias = inputs.addOptional(bias);
  return layer;
}

void addUp(Layer &layer, Inputs &inputs, int width, mlx_array up, mlx_array up_bias) {
  requirePacked(mlx_array_get_(up), width, layer.outputs, "up");
  requireVector(up_bias, layer.outputs, "up bias");
  layer.up = inputs.add(up);
  layer.up_bias = inputs.addOptional(up_bias);
}

Ending addEnding(Inputs &inputs, int rows, mlx_array residual, mlx_array norm_weight,
                 mlx_array norm_bias, float eps) {
  const mx::array &added = mlx_array_get_(residual);
  const int outputs = widthOf(added, "residual");
  require(added.shape(0) == rows, "residual must have the rows of x");
  requireVector(norm_weight, outputs, "norm weight");
  requireVector(norm_bias, outputs, "norm bias");
  Ending ending;
  ending.residual = inputs.add(added);
  ending.normalized = norm_weight.ctx;
  ending.norm_weight = inputs.addOptional(norm_weight);
  ending.norm_bias = inputs.addOptional(norm_bias);
  ending.eps = eps;
  return ending;
}

LinearTask taskOf(const Layer &layer, int width, const std::vector<Operand> &in) {
  LinearTask task{};
  task.inputs = width;
  task.outputs = layer.outputs;
  task.weights = {in[layer.weight].floats(), floatsAt(in, layer.bias)};
  task.up = {floatsAt(in, layer.up), floatsAt(in, layer.up_bias)};
  task.activation = layer.activation;
  return task;
}

Norm normOf(const Ending &ending, const std::vector<Operand> &in) {
  return {floatsAt(in, ending.norm_weight), floatsAt(in, ending.norm_bias), ending.eps, true};
}

/// One layer and its ending. The residual is read by row and column as it lies: it must be dense.
mx::array linearArray(const char *name, const mx::array &x, const Layer &layer,
                      const Ending &ending, Inputs &inputs, mx::Stream stream) {
  const KernelTable &table = kernels();
  const int rows = x.shape(0), width = x.shape(1);
  const int x_at = inputs.add(x);
  const auto body = [&table, layer, ending, x_at, rows, width](const std::vector<Operand> &in,
                                                               float *result) {
    LinearTask task = taskOf(layer, width, in);
    task.x = in[x_at].matrix();
    task.residual = floatsAt(in, ending.residual);
    task.result = result;
    const Norm norm = normOf(ending, in);
    runLinear(table, task, rows, ending.normalized ? &norm : nullptr);
  };
  const bool has_residual = ending.residual != kAbsent;
  // Written over the residual, a result would hide it from the parts that have still to read it as
  // x.
  const int reusable = ending.residual == x_at ? kAbsent : ending.residual;
  return kernelArray({name, has_residual ? Rows::dense : Rows::strided, body, reusable},
                     {rows, layer.outputs}, stream, inputs.take());
}

} // namespace

extern "C" {

// [outputs, inputs] -> the layout that the linear layers below take.
int mlxcel_pack(mlx_array *res, const mlx_array weight, const mlx_stream s) {
  return answer(res, [&] { return packedWeights(mlx_array_get_(weight), mlx_stream_get_(s)); });
}

// activation(x Wᵀ + bias): [rows, inputs] -> [rows, outputs].
int mlxcel_linear(mlx_array *res, const mlx_array x, const mlx_array packed, int outputs,
                  const mlx_array bias, int activation, const mlx_stream s) {
  return answer(res, [&] {
    Inputs inputs;
    Layer layer = addLayer(inputs, widthOf(mlx_array_get_(x), "x"), outputs, packed, bias);
    layer.activation = activationOf(activation);
    return linearArray("mlxcel_linear", mlx_array_get_(x), layer, {}, inputs, mlx_stream_get_(s));
  });
}

// residual + x Wᵀ + bias, [rows, outputs]; its LayerNorm where there is a norm_weight.
int mlxcel_linear_residual(mlx_array *res, const mlx_array x, const mlx_array packed,
                           const mlx_array bias, const mlx_array residual,
                           const mlx_array norm_weight, const mlx_array norm_bias, float eps,
                           const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &input = mlx_array_get_(x);
    const int width = widthOf(input, "x");
    Inputs inputs;
    const Ending ending = addEnding(inputs, input.shape(0), residual, norm_weight, norm_bias, eps);
    const Layer layer = addLayer(inputs, width, mlx_array_get_(residual).shape(1), packed, bias);
    return linearArray("mlxcel_linear_residual", input, layer, ending, inputs, mlx_stream_get_(s));
  });
}

// activation(x Gateᵀ + gate_bias) * (x Upᵀ + up_bias): [rows, inputs] -> [rows, outputs].
int mlxcel_gated_linear(mlx_array *res, const mlx_array x, const mlx_array gate, const mlx_array up,
                        int outputs, const mlx_array gate_bias, const mlx_array up_bias,
                        int activation, const mlx_stream s) {
  return answer(res, [&] {
    const int width = widthOf(mlx_array_get_(x), "x");
    Inputs inputs;
    Layer layer = addLayer(inputs, width, outputs, gate, gate_bias);
    layer.activation = activationOf(activation);
    addUp(layer, inputs, width, up, up_bias);
    return linearArray("mlxcel_gated_linear", mlx_array_get_(x), layer, {}, inputs,
                       mlx_stream_get_(s));
  });
}

// residual + down(activation(gate(x)) * up(x)), without `up` down(activation(gate(x))); its
// LayerNorm where there is a norm_weight. [rows, width] twice -> [rows, width].
int mlxcel_mlp(mlx_array *res, const mlx_array x, const mlx_array gate, const mlx_array gate_bias,
               const mlx_array up, const mlx_array up_bias, int inner, int activation,
               const mlx_array down, const mlx_array down_bias, const mlx_array residual,
               const mlx_array norm_weight, const mlx_array norm_bias, float eps,
               const mlx_stream s) {
  return answer(res, [&] {
    const mx::array &input = mlx_array_get_(x);
    const int rows = input.ndim() > 0 ? input.shape(0) : 0, width = widthOf(input, "x");
    Inputs inputs;
    const int x_at = inputs.add(input);
    const Ending ending = addEnding(inputs, rows, residual, norm_weight, norm_bias, eps);
    Layer first = addLayer(inputs, width, inner, gate, gate_bias);
    first.activation = activationOf(activation);
    if (up.ctx) addUp(first, inputs, width, up, up_bias);
    const int outputs = mlx_array_get_(residual).shape(1);
    const Layer second = addLayer(inputs, inner, outputs, down, down_bias);
    const KernelTable &table = kernels();
    const auto body = [&table, first, second, ending, x_at, rows,
                       width](const std::vector<Operand> &in, float *result) {
      LinearTask inner_task = taskOf(first, width, in);
      inner_task.x = in[x_at].matrix();
      LinearTask outer_task = taskOf(second, first.outputs, in);
      outer_task.residual = floatsAt(in, ending.residual);
      outer_task.result = result;
      const Norm norm = normOf(ending, in);
      runLinearPair(table, inner_task, outer_task, rows, ending.normalized ? &norm : nullptr);
    };
    // Each part has read its rows of x before it writes them, so the result may even lie over x.
    return kernelArray({"mlxcel_mlp", Rows::dense, body, ending.residual}, {rows, outputs},
                       mlx_stream_get_(s), inputs.take());
  });
}
}
