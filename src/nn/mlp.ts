import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "./activations.ts";
import { kernelsFor } from "./kernels.ts";
import { linear, packedLayer, residualLinear, type ResidualLinear } from "./linear.ts";
import type { LayerNorm } from "./norms.ts";

/** Names of the tensors without `.weight` and `.bias`. */
export interface MlpNames {
  readonly input: string;
  readonly output: string;
}

interface MlpShape {
  readonly width: number;
  readonly inner: number;
  /** Of both layers. */
  readonly bias: boolean;
  readonly activation: Activation;
  /** Applied to the sum, as at the end of a post-norm layer. */
  readonly norm?: LayerNorm | undefined;
}

/** residual + output(activation(input(x))), or the norm of that: [N, width] twice -> [N, width]. */
export function mlp(weights: Weights, names: MlpNames, shape: MlpShape): ResidualLinear {
  const { width, inner, bias, activation, norm } = shape;
  const inputShape = { inputs: width, outputs: inner, bias };
  const outputShape = { inputs: inner, outputs: width, bias };
  const kernels = kernelsFor(weights, Object.values(names));
  if (kernels) {
    const gate = packedLayer(kernels, weights, [names.input], inputShape);
    const down = packedLayer(kernels, weights, [names.output], outputShape);
    const layers = { gate, down, activation: activation.kind };
    return (x, residual) => kernels.mlp(x, layers, residual, norm?.parameters);
  }
  const input = linear(weights, names.input, inputShape);
  const output = residualLinear(weights, names.output, { ...outputShape, norm });
  return (x, residual) => output(activation(input(x)), residual);
}
