import * as mx from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "./activations.ts";
import { linear, type Linear } from "./linear.ts";

export interface GatedMlpShape {
  readonly width: number;
  readonly inner: number;
  readonly activation: Activation;
}

/**
 * down(activation(gate(x)) · up(x)), with `silu` the SwiGLU of Shazeer 2020, from `<name>.gate_proj`, `.up_proj` and
 * `.down_proj` without biases: [N, width] -> [N, width].
 */
export function gatedMlp(weights: Weights, name: string, shape: GatedMlpShape): Linear {
  const { width, inner, activation } = shape;
  const project = (part: string, inputs: number, outputs: number) =>
    linear(weights, `${name}.${part}`, { inputs, outputs, bias: false });
  const gate = project("gate_proj", width, inner);
  const up = project("up_proj", width, inner);
  const down = project("down_proj", inner, width);
  return (x) => down(mx.multiply(activation(gate(x)), up(x)));
}
