import * as mx from "../../ffi/index.ts";
import type { ActivationKind, Tensor } from "../../ffi/index.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { kernelsOn } from "./kernels.ts";

/** Element-wise; shape and dtype stay. */
export interface Activation {
  (x: Tensor): Tensor;
  readonly kind: ActivationKind;
}

/** The names that `hidden_act` and its like take in config.json. */
const activations: ReadonlyMap<string, Activation> = new Map([
  ["gelu", activationOf("gelu", gelu)],
  ["gelu_new", activationOf("geluTanh", geluTanh)],
  ["gelu_pytorch_tanh", activationOf("geluTanh", geluTanh)],
  ["relu", activationOf("relu", relu)],
  ["silu", activationOf("silu", silu)],
  ["swish", activationOf("silu", silu)],
  ["tanh", activationOf("tanh", mx.tanh)],
  ["identity", activationOf("identity", (x) => x)],
]);

/** `setting` says where the name stands, e.g. `config.json: hidden_act`. Throws CheckpointError if unknown. */
export function activation(name: string, setting: string): Activation {
  const found = activations.get(name);
  if (found) return found;
  const known = [...activations.keys()].join(", ");
  throw new CheckpointError(`${setting}: unknown activation "${name}" (known: ${known})`);
}

function activationOf(kind: ActivationKind, plain: (x: Tensor) => Tensor): Activation {
  const activate = (x: Tensor) => kernelsOn(x)?.activate(x, kind) ?? plain(x);
  return Object.assign(kind === "identity" ? plain : activate, { kind });
}

/** x · Φ(x), exact (Hendrycks and Gimpel 2016). */
function gelu(x: Tensor): Tensor {
  const erf = mx.erf(mx.multiply(x, constant(Math.SQRT1_2, x)));
  return mx.multiply(half(x), mx.add(erf, constant(1, x)));
}

/** The tanh approximation in the same paper. */
function geluTanh(x: Tensor): Tensor {
  const cube = mx.multiply(mx.square(x), x);
  const inner = mx.add(x, mx.multiply(cube, constant(0.044715, x)));
  const tanh = mx.tanh(mx.multiply(inner, constant(Math.sqrt(2 / Math.PI), x)));
  return mx.multiply(half(x), mx.add(tanh, constant(1, x)));
}

function relu(x: Tensor): Tensor {
  return mx.maximum(x, constant(0, x));
}

function silu(x: Tensor): Tensor {
  return mx.multiply(x, mx.sigmoid(x));
}

function half(x: Tensor): Tensor {
  return mx.multiply(x, constant(0.5, x));
}

function constant(value: number, like: Tensor): Tensor {
  return mx.scalar(value, like.dtype);
}
