import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "./activations.ts";
import { kernelsFor } from "./kernels.ts";
import { linear, type Linear, normedResidualLinear, packedLayer } from "./linear.ts";
import type { LayerNorm } from "./norms.ts";

export interface NormedMlpShape {
  readonly width: number;
  readonly inner: number;
  readonly activation: Activation;
  readonly norm: LayerNorm;
}

/** norm(x + output(activation(input(x)))), both layers with biases: [N, width] -> [N, width]. */
export function normedMlp(
  weights: Weights,
  names: { readonly input: string; readonly output: string },
  { width, inner, activation, norm }: NormedMlpShape,
): Linear {
  const inputShape = { inputs: width, outputs: inner, bias: true };
  const outputShape = { inputs: inner, outputs: width, bias: true };
  const kernels = kernelsFor(weights);
  if (kernels) {
    const gate = packedLayer(kernels, weights, [names.input], inputShape);
    const down = packedLayer(kernels, weights, [names.output], outputShape);
    const layers = { gate, down, activation: activation.kind };
    return (x) => kernels.mlp(x, layers, x, norm.parameters);
  }
  const input = linear(weights, names.input, inputShape);
  const output = normedResidualLinear(weights, names.output, { ...outputShape, norm });
  return (x) => output(activation(input(x)), x);
}
