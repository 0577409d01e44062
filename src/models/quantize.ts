/** Writes a quantised copy of a checkpoint, in the layout of mlx-community. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import * as mx from "../../ffi/index.ts";
import type { Packing, Tensor } from "../../ffi/index.ts";
import { readCheckpoint, type Checkpoint } from "../checkpoint/checkpoint.ts";
import { copyCompanions } from "../checkpoint/companions.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { isAdapter } from "../checkpoint/lora-config.ts";
import { readQuantization, writtenPacking } from "../checkpoint/quantization.ts";
import type { TensorLocation } from "../checkpoint/tensor-files.ts";
import { ShardWriter } from "../checkpoint/shard-writer.ts";
import { FLOATS, SafetensorsFiles } from "../checkpoint/weight-files.ts";
import { removeLeftovers } from "../native/leftovers.ts";
import { reasonOf } from "../native/thrown.ts";

interface QuantizeOptions {
  /** Directory of a dense checkpoint. */
  readonly source: string;
  /** Directory to make. */
  readonly target: string;
  readonly packing: Packing;
  /** Called with the number of tensors written, and that of all. */
  readonly onProgress: (done: number, total: number) => void;
}

interface QuantizeReport {
  /** Matrices that were quantised. */
  readonly quantized: number;
  /** Layers whose matrices stayed as they were: the group size does not divide their width, or they have one row. */
  readonly leftDense: readonly string[];
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/**
 * Quantises every matrix `<layer>.weight`, those of embeddings included, and copies the rest. Nothing is left behind
 * where it fails. Throws CheckpointError where the source is no dense checkpoint or the target exists.
 */
export function quantizeCheckpoint(options: QuantizeOptions): QuantizeReport {
  if (isAdapter(options.source)) {
    throw new CheckpointError(
      `${options.source} is a LoRA adapter; merge it into its base with peft first`,
    );
  }
  const checkpoint = readCheckpoint(options.source);
  const files = denseFiles(checkpoint);
  const target = resolve(options.target);
  if (existsSync(target)) {
    throw new CheckpointError(`${options.target} exists; name a directory that does not`);
  }
  mx.openDevice("auto");
  // A directory of its own until it is whole
  const unfinished = `${target}.tmp.${process.pid}`;
  try {
    removeLeftovers(dirname(target), (name) => name === basename(target));
    const report = write(checkpoint, files, { ...options, target: unfinished });
    renameSync(unfinished, target);
    return report;
  } catch (error) {
    if (error instanceof CheckpointError) throw error;
    throw new CheckpointError(
      `${options.target} cannot be written: ${reasonOf(error)}; free some space, or name another place with -o`,
      { cause: error },
    );
  } finally {
    // Removing what is not there fails, too, where nothing may be written
    if (existsSync(unfinished)) rmSync(unfinished, { recursive: true });
  }
}

function denseFiles({ directory, gguf, config, weightsDirectory }: Checkpoint) {
  if (gguf) throw new CheckpointError(`${directory} is a GGUF file; quantise the original model`);
  if (readQuantization(config)) {
    throw new CheckpointError(
      `${directory} is quantised already, by its config.json; quantise the original model`,
    );
  }
  return new SafetensorsFiles(weightsDirectory);
}

type Plan = "quantize" | "leave dense" | "copy";

/** One-row matrices are heads of classifiers: nothing to save, and the score hangs on them. */
function planOf(name: string, { dtype, shape }: TensorLocation, packing: Packing): Plan {
  const [rows = 0, columns = 0] = shape;
  if (!name.endsWith(".weight") || !FLOATS.has(dtype) || shape.length !== 2) return "copy";
  const scales = (rows * columns) / packing.groupSize;
  const fits =
    columns % packing.groupSize === 0 &&
    (packing.mode !== "nvfp4" || scales % mx.FP8_SCALES_AT_ONCE === 0);
  return rows > 1 && fits ? "quantize" : "leave dense";
}

function write(
  checkpoint: Checkpoint,
  files: SafetensorsFiles,
  { target, packing, onProgress }: QuantizeOptions,
): QuantizeReport {
  const folder = join(target, relative(checkpoint.directory, checkpoint.transformerDirectory));
  mkdirSync(folder, { recursive: true });
  const leftDense: string[] = [];
  const shards = new ShardWriter(folder);
  let quantized = 0;
  let done = 0;
  let bytesBefore = 0;
  for (const [name, location] of files.locations) {
    const plan = planOf(name, location, packing);
    const layer = name.replace(/\.weight$/, "");
    if (plan === "leave dense") leftDense.push(layer);
    if (plan === "quantize") quantized++;
    const stored = files.tensor(name);
    if (!(stored instanceof mx.Tensor)) throw new Error(`"${name}" is quantised`);
    if (plan === "quantize") {
      shards.add(packed(layer, stored, packing));
      stored.free();
    } else shards.add({ [name]: stored });
    bytesBefore += location.byteLength;
    onProgress(++done, files.locations.size);
  }
  if (quantized === 0) {
    throw new CheckpointError(
      `no matrix in ${checkpoint.directory} has a width that groups of ${packing.groupSize} divide`,
    );
  }
  const bytesAfter = shards.finish();
  const settings = writtenPacking(packing, leftDense);
  const config = { ...checkpoint.config, quantization: settings, quantization_config: settings };
  writeFileSync(join(folder, "config.json"), `${JSON.stringify(config, null, 4)}\n`);
  copyCompanions(checkpoint, target);
  return { quantized, leftDense, bytesBefore, bytesAfter };
}

/** The tensors of a quantised layer by name, evaluated. */
function packed(layer: string, weight: Tensor, packing: Packing): Record<string, Tensor> {
  const { packed, scales, biases } = mx.keep(mx.quantize(weight, packing));
  const parts = {
    [`${layer}.weight`]: packed,
    [`${layer}.scales`]: scales,
    ...(biases && { [`${layer}.biases`]: biases }),
  };
  mx.evaluate(...Object.values(parts));
  return parts;
}
