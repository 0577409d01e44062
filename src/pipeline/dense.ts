import { join } from "node:path";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { readJson } from "../checkpoint/json-file.ts";
import { Weights, type WeightsOptions } from "../checkpoint/weights.ts";
import { activation, type Activation } from "../nn/activations.ts";
import { linear, type Linear } from "../nn/linear.ts";

/** What a module of a chain works on, in sentence-transformers' words. */
export type Feature = "sentence_embedding" | "token_embeddings";

const denseFile = (feature: Feature) =>
  z.looseObject({
    in_features: z.int().positive(),
    out_features: z.int().positive(),
    bias: z.boolean().default(true),
    activation_function: z.string().default("torch.nn.modules.activation.Tanh"),
    module_input_name: z.literal(feature).nullish(),
    module_output_name: z.literal(feature).nullish(),
    use_residual: z.boolean().nullish(),
  });

/** Classes of torch.nn, by the names of nn/activations. */
const activationOfClass: ReadonlyMap<string, string> = new Map([
  ["torch.nn.modules.linear.Identity", "identity"],
  ["torch.nn.modules.activation.Tanh", "tanh"],
  ["torch.nn.modules.activation.ReLU", "relu"],
  ["torch.nn.modules.activation.GELU", "gelu"],
  ["torch.nn.modules.activation.SiLU", "silu"],
]);

/** A projection of vectors: [n, inputs] -> [n, outputs]. */
interface Dense {
  readonly inputs: number;
  readonly outputs: number;
  readonly forward: Linear;
}

/**
 * Reads a Dense module, one that works on `feature`: its config.json and its own weights. Throws CheckpointError
 * naming what is wrong.
 */
export function loadDense(
  moduleDirectory: string,
  feature: Feature,
  computeDtype: WeightsOptions["computeDtype"],
): Dense {
  const path = join(moduleDirectory, "config.json");
  const file = readJson(path, denseFile(feature));
  const activate = activationOf(file.activation_function, path);
  const { in_features: inputs, out_features: outputs, bias } = file;
  const weights = Weights.open(moduleDirectory, { prefixes: [], computeDtype });
  const project = linear(weights, "linear", { inputs, outputs, bias });
  const residual = file.use_residual ? residualPath(weights, inputs, outputs) : undefined;
  weights.close();
  const forward: Linear = (x) => activate(project(x));
  if (!residual) return { inputs, outputs, forward };
  return { inputs, outputs, forward: (x) => mx.add(forward(x), residual(x)) };
}

/** The input itself, or a projection of it where the width changes. */
function residualPath(weights: Weights, inputs: number, outputs: number): Linear {
  if (inputs === outputs) return (x) => x;
  return linear(weights, "residual", { inputs, outputs, bias: false });
}

function activationOf(className: string, path: string): Activation {
  const name = activationOfClass.get(className);
  if (name) return activation(name, `${path}: activation_function`);
  const known = [...activationOfClass.keys()].join(", ");
  throw new CheckpointError(
    `${path}: unknown activation_function "${className}" (known: ${known})`,
  );
}
