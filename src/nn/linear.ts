import * as mx from "../../ffi/index.ts";
import type { Kernels, PackedLayer, Quantized, Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { kernelsFor } from "./kernels.ts";
import type { LayerNorm } from "./norms.ts";

/** [N, in] -> [N, out]. */
export type Linear = (x: Tensor) => Tensor;

/** x [N, in] and residual [N, out] -> [N, out]. */
export type ResidualLinear = (x: Tensor, residual: Tensor) => Tensor;

export interface LinearShape {
  readonly inputs: number;
  readonly outputs: number;
  readonly bias: boolean;
}

/** x·Wᵀ + b from `<name>.weight` [out, in] and, with `bias`, `<name>.bias` [out]. */
export function linear(weights: Weights, name: string, shape: LinearShape): Linear {
  const kernels = kernelsFor(weights, [name]);
  if (kernels) {
    const layer = packedLayer(kernels, weights, [name], shape);
    return (x) => kernels.linear(x, layer);
  }
  const { inputs, outputs } = shape;
  const weight = weights.takeMatrix(`${name}.weight`, [outputs, inputs]);
  const bias = shape.bias ? weights.take(`${name}.bias`, [outputs]) : undefined;
  return weight instanceof mx.Tensor ? denseLinear(weight, bias) : quantizedLinear(weight, bias);
}

function denseLinear(weight: Tensor, bias: Tensor | undefined): Linear {
  // [out, in] -> [in, out], a view
  const transposed = mx.keep(mx.transpose(weight));
  return (x) => affine(x, transposed, bias);
}

function affine(x: Tensor, transposed: Tensor, bias: Tensor | undefined): Tensor {
  return bias ? mx.addmm(bias, x, transposed) : mx.matmul(x, transposed);
}

/**
 * On the CPU the matrix is made dense anew for each batch: mlx's quantised product unpacks it for each row, which
 * takes longer from about eight rows on.
 */
function quantizedLinear(weight: Quantized, bias: Tensor | undefined): Linear {
  if (mx.openDevice("auto") === "gpu") {
    const product: Linear = (x) => mx.quantizedMatmul(x, weight);
    return bias ? (x) => mx.add(product(x), bias) : product;
  }
  const dense = () => mx.astype(mx.dequantize(weight), "float32");
  const kernels = mx.kernels();
  if (kernels) {
    const outputs = weight.packed.shape[0]!;
    return (x) => kernels.linear(x, { weight: kernels.pack(dense()), bias, outputs });
  }
  return (x) => affine(x, mx.transpose(dense()), bias);
}

interface ResidualLinearShape extends LinearShape {
  /** Applied to the sum, as at the end of each half of a post-norm layer. */
  readonly norm?: LayerNorm | undefined;
}

/** residual + linear(x), or norm(residual + linear(x)). */
export function residualLinear(
  weights: Weights,
  name: string,
  { norm, ...shape }: ResidualLinearShape,
): ResidualLinear {
  const kernels = kernelsFor(weights, [name]);
  if (kernels) {
    const layer = packedLayer(kernels, weights, [name], shape);
    return (x, residual) => kernels.linearResidual(x, layer, residual, norm?.parameters);
  }
  const project = linear(weights, name, shape);
  const add: ResidualLinear = (x, residual) => mx.add(residual, project(x));
  return norm ? (x, residual) => norm(add(x, residual)) : add;
}

/** For kernels: the linear layers of these names and one shape as one, their outputs side by side. */
export function packedLayer(
  kernels: Kernels,
  weights: Weights,
  names: readonly string[],
  { inputs, outputs, bias }: LinearShape,
): PackedLayer {
  const parts = (part: string) => names.map((name) => `${name}.${part}`);
  const weight = weights.derive(parts("weight"), [outputs, inputs], (matrices) =>
    // [out, in] each -> [layers * out, in]
    kernels.pack(joined(matrices)),
  );
  return {
    weight,
    bias: bias ? weights.derive(parts("bias"), [outputs], joined) : undefined,
    outputs: names.length * outputs,
  };
}

function joined(tensors: readonly Tensor[]): Tensor {
  return tensors.length === 1 ? tensors[0]! : mx.concatenate(tensors, 0);
}
