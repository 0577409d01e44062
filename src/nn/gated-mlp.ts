import * as mx from "../../ffi/index.ts";
import type { Kernels, PackedLayer, Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "./activations.ts";
import { kernelsFor } from "./kernels.ts";
import { linear, type Linear, packedLayer, residualLinear, type ResidualLinear } from "./linear.ts";
import type { LayerNorm } from "./norms.ts";

interface GatedMlpShape {
  readonly width: number;
  readonly inner: number;
  /** Of gate and up. */
  readonly bias: boolean;
  /** Absent: as `bias`. */
  readonly downBias?: boolean | undefined;
  readonly activation: Activation;
  /** Applied to the sum, as at the end of a post-norm layer. */
  readonly norm?: LayerNorm | undefined;
}

/** Names of the tensors without `.weight` and `.bias`; a joint one holds the rows of both, in the order of its name. */
export type GatedMlpNames = { readonly down: string } & GateNames;

type GateNames =
  | { readonly gate: string; readonly up: string }
  | { readonly gateUp: string }
  | { readonly upGate: string };

/**
 * residual + down(activation(gate(x)) · up(x)), with `silu` the SwiGLU of Shazeer 2020, or the norm of that:
 * [N, width] twice -> [N, width].
 */
export function gatedMlp(
  weights: Weights,
  names: GatedMlpNames,
  shape: GatedMlpShape,
): ResidualLinear {
  const { width, inner, bias, downBias = bias, activation, norm } = shape;
  const downShape = { inputs: inner, outputs: width, bias: downBias };
  const kernels = kernelsFor(weights, Object.values(names));
  if (kernels) {
    const { gate, up } = packedGate(kernels, weights, names, shape);
    const down = packedLayer(kernels, weights, [names.down], downShape);
    const layers = { gate, up, down, activation: activation.kind };
    return (x, residual) => kernels.mlp(x, layers, residual, norm?.parameters);
  }
  const gated = plainGate(weights, names, shape);
  const down = residualLinear(weights, names.down, { ...downShape, norm });
  return (x, residual) => down(gated(x), residual);
}

/** activation(gate(x)) · up(x): [N, width] -> [N, inner]. */
export function gatedLinear(
  weights: Weights,
  names: { readonly gate: string; readonly up: string },
  shape: Omit<GatedMlpShape, "downBias" | "norm">,
): Linear {
  const kernels = kernelsFor(weights, Object.values(names));
  if (!kernels) return plainGate(weights, names, shape);
  const { gate, up } = packedGate(kernels, weights, names, shape);
  return (x) => kernels.gatedLinear(x, gate, up, shape.activation.kind);
}

/** Where the rows of a layer lie: `inner` of the `total` rows of a tensor, from `first`. */
interface LayerRows {
  readonly name: string;
  readonly first: number;
  readonly total: number;
}

function rowsOf(names: GateNames, inner: number): { gate: LayerRows; up: LayerRows } {
  if ("gate" in names) {
    const whole = { first: 0, total: inner };
    return { gate: { name: names.gate, ...whole }, up: { name: names.up, ...whole } };
  }
  const gateFirst = "gateUp" in names;
  const name = gateFirst ? names.gateUp : names.upGate;
  const half = (first: number) => ({ name, first, total: 2 * inner });
  return gateFirst ? { gate: half(0), up: half(inner) } : { gate: half(inner), up: half(0) };
}

/** activation(gate(x)) · up(x): [N, width] -> [N, inner]. */
function plainGate(weights: Weights, names: GateNames, shape: GatedMlpShape): Linear {
  const { width: inputs, inner, bias, activation } = shape;
  const { gate, up } = rowsOf(names, inner);
  const layer = ({ name, total }: LayerRows) =>
    linear(weights, name, { inputs, outputs: total, bias });
  const product = (gated: Tensor, upper: Tensor) => mx.multiply(activation(gated), upper);
  if (gate.name === up.name) {
    const both = layer(gate);
    return (x) => {
      // [N, 2 * inner] -> twice [N, inner]
      const [first, second] = mx.split(both(x), 2, 1);
      return gate.first === 0 ? product(first!, second!) : product(second!, first!);
    };
  }
  const [gateLayer, upLayer] = [layer(gate), layer(up)];
  return (x) => product(gateLayer(x), upLayer(x));
}

function packedGate(
  kernels: Kernels,
  weights: Weights,
  names: GateNames,
  { width, inner, bias }: GatedMlpShape,
): { gate: PackedLayer; up: PackedLayer } {
  const layer = ({ name, first, total }: LayerRows): PackedLayer => ({
    weight: weights.derive([`${name}.weight`], [total, width], ([matrix]) =>
      kernels.pack(mx.slice(matrix!, [first, 0], [first + inner, width])),
    ),
    bias: bias
      ? weights.derive([`${name}.bias`], [total], ([vector]) =>
          mx.contiguous(mx.slice(vector!, [first], [first + inner])),
        )
      : undefined,
    outputs: inner,
  });
  const { gate, up } = rowsOf(names, inner);
  return { gate: layer(gate), up: layer(up) };
}
