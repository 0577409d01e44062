import * as mx from "../../ffi/index.ts";
import type { Kernels, PackedLayer, Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "./activations.ts";
import { kernelsFor } from "./kernels.ts";
import { linear, type Linear, packedLayer, residualLinear, type ResidualLinear } from "./linear.ts";

export interface GatedMlpShape {
  readonly width: number;
  readonly inner: number;
  readonly bias: boolean;
  readonly activation: Activation;
}

/** Names of the tensors without `.weight` and `.bias`; one `gateUp` holds the rows of both, the gate's first. */
export type GatedMlpNames =
  | { readonly gate: string; readonly up: string; readonly down: string }
  | { readonly gateUp: string; readonly down: string };

/**
 * residual + down(activation(gate(x)) · up(x)), with `silu` the SwiGLU of Shazeer 2020: [N, width] twice ->
 * [N, width].
 */
export function gatedMlp(
  weights: Weights,
  names: GatedMlpNames,
  shape: GatedMlpShape,
): ResidualLinear {
  const { width, inner, bias, activation } = shape;
  const downShape = { inputs: inner, outputs: width, bias };
  const kernels = kernelsFor(weights);
  if (kernels) {
    const { gate, up } = packedGate(kernels, weights, names, shape);
    const down = packedLayer(kernels, weights, [names.down], downShape);
    const layers = { gate, up, down, activation: activation.kind };
    return (x, residual) => kernels.mlp(x, layers, residual);
  }
  const gated = plainGate(weights, names, shape);
  const down = residualLinear(weights, names.down, downShape);
  return (x, residual) => down(gated(x), residual);
}

/** activation(gate(x)) · up(x): [N, width] -> [N, inner]. */
function plainGate(weights: Weights, names: GatedMlpNames, shape: GatedMlpShape): Linear {
  const { width: inputs, inner, bias, activation } = shape;
  const product = (gate: Tensor, up: Tensor) => mx.multiply(activation(gate), up);
  if ("gateUp" in names) {
    const both = linear(weights, names.gateUp, { inputs, outputs: 2 * inner, bias });
    return (x) => {
      // [N, 2 * inner] -> twice [N, inner]
      const [gate, up] = mx.split(both(x), 2, 1);
      return product(gate!, up!);
    };
  }
  const gate = linear(weights, names.gate, { inputs, outputs: inner, bias });
  const up = linear(weights, names.up, { inputs, outputs: inner, bias });
  return (x) => product(gate(x), up(x));
}

function packedGate(
  kernels: Kernels,
  weights: Weights,
  names: GatedMlpNames,
  { width, inner, bias }: GatedMlpShape,
) {
  const joint = "gateUp" in names;
  const rows = joint ? 2 * inner : inner;
  const layer = (name: string, first: number): PackedLayer => ({
    weight: weights.derive([`${name}.weight`], [rows, width], ([matrix]) =>
      kernels.pack(mx.slice(matrix!, [first, 0], [first + inner, width])),
    ),
    bias: bias
      ? weights.derive([`${name}.bias`], [rows], ([vector]) =>
          mx.contiguous(mx.slice(vector!, [first], [first + inner])),
        )
      : undefined,
    outputs: inner,
  });
  return {
    gate: layer(joint ? names.gateUp : names.gate, 0),
    up: layer(joint ? names.gateUp : names.up, joint ? inner : 0),
  };
}
