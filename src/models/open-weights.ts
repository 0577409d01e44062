import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { GgufTensors } from "../checkpoint/gguf/tensors.ts";
import { Weights, type WeightsOptions } from "../checkpoint/weights.ts";
import { refuseQuantised } from "./config.ts";
import type { ModelFamily } from "./family.ts";

/** On CPU half-precision arithmetic is slower and less exact than f32. */
export function computeDtypeOn(device: "cpu" | "gpu"): WeightsOptions["computeDtype"] {
  return device === "cpu" ? "float32" : "stored";
}

/** The tensors of a checkpoint. Throws CheckpointError where they are quantised, missing or damaged. */
export function openWeights(
  { transformerDirectory, gguf, config }: Checkpoint,
  family: ModelFamily,
  device: "cpu" | "gpu",
): Weights {
  refuseQuantised(config);
  const computeDtype = family.needsFloat32 ? "float32" : computeDtypeOn(device);
  const options = { prefixes: family.weightPrefixes, computeDtype };
  return gguf
    ? new Weights(new GgufTensors(gguf, computeDtype), options)
    : Weights.open(transformerDirectory, options);
}
