import { AdaptedFiles } from "../checkpoint/adapted-files.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { GgufTensors } from "../checkpoint/gguf/tensors.ts";
import { LoraAdapter } from "../checkpoint/lora.ts";
import { readQuantization } from "../checkpoint/quantization.ts";
import type { TensorFiles } from "../checkpoint/tensor-files.ts";
import { FLOATS, SafetensorsFiles } from "../checkpoint/weight-files.ts";
import { type WeightFacts, Weights, type WeightsOptions } from "../checkpoint/weights.ts";
import { memoryText } from "../hub/byte-text.ts";
import type { ModelFamily } from "./family.ts";

/** On CPU half-precision arithmetic is slower and less exact than f32. */
export function computeDtypeOn(device: "cpu" | "gpu"): WeightsOptions["computeDtype"] {
  return device === "cpu" ? "float32" : "stored";
}

/** Whether quantised weights become f32 on the CPU: `auto` where memory allows it. */
export type CpuDequantize = "auto" | "on" | "off";

export interface WeightsPlacement {
  /** The device that this thread opened. */
  readonly device: "cpu" | "gpu";
  /** auto where absent. */
  readonly cpuDequantize?: CpuDequantize | undefined;
}

interface OpenedWeights {
  readonly weights: Weights;
  readonly facts: WeightFacts;
}

/** The tensors of a checkpoint. Throws CheckpointError where they are missing, damaged or quantised in an unknown way. */
export function openWeights(
  checkpoint: Checkpoint,
  { weightPrefixes: prefixes, needsFloat32 }: ModelFamily,
  { device, cpuDequantize = "auto" }: WeightsPlacement,
): OpenedWeights {
  const freeBytes = process.availableMemory();
  const isDequantized = (float32Bytes: number) =>
    device === "cpu" &&
    (cpuDequantize === "auto" ? leavesRoom(float32Bytes, freeBytes) : cpuDequantize === "on");
  const computeDtype = needsFloat32 ? "float32" : computeDtypeOn(device);
  const files = tensorFiles(checkpoint, computeDtype);
  const keepQuantized = (float32Bytes: number) => !isDequantized(float32Bytes);
  const weights = new Weights(files, { prefixes, computeDtype, keepQuantized });
  const isConverted = device === "cpu" && weights.areQuantized;
  const { adapter, weightsDirectory } = checkpoint;
  const loadNotes = [
    ...(isConverted ? [dequantizationNote(weights, freeBytes)] : []),
    ...(adapter === undefined ? [] : [`adapter ${adapter} merged into ${weightsDirectory}`]),
  ];
  return { weights, facts: { storedDtype: weights.storedDtype, loadNotes } };
}

/** The files of a checkpoint, with the adapter merged in where it has one. */
export function tensorFiles(
  { weightsDirectory, gguf, config, adapter }: Checkpoint,
  computeDtype: WeightsOptions["computeDtype"],
): TensorFiles {
  if (gguf) return new GgufTensors(gguf, computeDtype);
  const files = new SafetensorsFiles(weightsDirectory, readQuantization(config));
  if (adapter === undefined) return files;
  return new AdaptedFiles(files, new LoraAdapter(adapter), computeDtype);
}

/** A quarter of the free memory is for what the network computes. */
const WEIGHTS_SHARE = 0.75;

/** Whether weights in f32 leave memory to compute in. */
export function leavesRoom(float32Bytes: number, freeBytes: number): boolean {
  return float32Bytes <= WEIGHTS_SHARE * freeBytes;
}

function dequantizationNote(weights: Weights, freeBytes: number): string {
  const { storedDtype, float32Bytes, stayQuantized } = weights;
  const which = FLOATS.has(storedDtype) ? "some" : storedDtype; // most may be dense
  const sizes = `${memoryText(float32Bytes)} in f32, ${memoryText(freeBytes)} of memory free`;
  return stayQuantized
    ? `${which} weights stay quantised, which is slow on the CPU (${sizes}; --cpu-dequantize on makes them dense)`
    : `${which} weights de-quantised once for the CPU (${sizes}; --cpu-dequantize off keeps them small)`;
}
