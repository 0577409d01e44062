import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { readJson } from "../checkpoint/json-file.ts";
import { Weights, type WeightsOptions } from "../checkpoint/weights.ts";
import { activation, type Activation } from "../nn/activations.ts";
import { linear, type Linear } from "../nn/linear.ts";

const denseFile = z.looseObject({
  in_features: z.int().positive(),
  out_features: z.int().positive(),
  bias: z.boolean().default(true),
  activation_function: z.string().default("torch.nn.modules.activation.Tanh"),
  module_input_name: z.literal("sentence_embedding").nullish(),
  module_output_name: z.literal("sentence_embedding").nullish(),
  use_residual: z.literal(false).nullish(),
});

/** Classes of torch.nn, by the names of nn/activations. */
const activationOfClass: ReadonlyMap<string, string> = new Map([
  ["torch.nn.modules.linear.Identity", "identity"],
  ["torch.nn.modules.activation.Tanh", "tanh"],
  ["torch.nn.modules.activation.ReLU", "relu"],
  ["torch.nn.modules.activation.GELU", "gelu"],
  ["torch.nn.modules.activation.SiLU", "silu"],
]);

/** A projection of the pooled vectors: [B, inputs] -> [B, outputs]. */
export interface Dense {
  readonly inputs: number;
  readonly outputs: number;
  readonly forward: Linear;
}

/** Reads a Dense module: its config.json and its own weights. Throws CheckpointError naming what is wrong. */
export function loadDense(
  moduleDirectory: string,
  computeDtype: WeightsOptions["computeDtype"],
): Dense {
  const path = join(moduleDirectory, "config.json");
  const file = readJson(path, denseFile);
  const activate = activationOf(file.activation_function, path);
  const { in_features: inputs, out_features: outputs, bias } = file;
  const weights = Weights.open(moduleDirectory, { prefixes: [], computeDtype });
  const project = linear(weights, "linear", { inputs, outputs, bias });
  weights.close();
  return { inputs, outputs, forward: (x) => activate(project(x)) };
}

function activationOf(className: string, path: string): Activation {
  const name = activationOfClass.get(className);
  if (name) return activation(name, `${path}: activation_function`);
  const known = [...activationOfClass.keys()].join(", ");
  throw new CheckpointError(
    `${path}: unknown activation_function "${className}" (known: ${known})`,
  );
}
