import * as mx from "../../ffi/index.ts";
import type { Quantized, Tensor } from "../../ffi/index.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { FLOATS } from "../checkpoint/weight-files.ts";
import { NEXT_STEP, NotFinite } from "../pipeline/pending-values.ts";
import { tensorFiles } from "./open-weights.ts";

/**
 * Runs a model for the first time. Where it computes NaN or an infinity, its weights are read once more for the tensor
 * that brings them in: a check at every load would cost all the others a pass over their weights.
 *
 * @throws CheckpointError naming that tensor; NotFinite where every weight is finite
 */
export function withDamageNamed<T>(directory: string, base: string | undefined, run: () => T): T {
  try {
    return run();
  } catch (error) {
    const damaged = error instanceof NotFinite && damagedTensor(directory, base);
    if (!damaged) throw error;
    throw new CheckpointError(
      `${damaged.file} is damaged: "${damaged.name}" holds numbers that are not finite; ${NEXT_STEP}`,
      { cause: error },
    );
  }
}

function damagedTensor(directory: string, base: string | undefined) {
  const files = tensorFiles(readCheckpoint(directory, base), "stored");
  for (const [name, { file, dtype, packing }] of files.locations) {
    if (!packing && !FLOATS.has(dtype)) continue;
    const parts = partsOf(files.tensor(name));
    const isWhole = parts.every(isFinite);
    for (const part of parts) part.free();
    if (!isWhole) return { name, file };
  }
  return undefined;
}

function partsOf(tensor: Tensor | Quantized): readonly Tensor[] {
  if (tensor instanceof mx.Tensor) return [tensor];
  const { scales, biases } = tensor;
  return biases ? [scales, biases] : [scales];
}

function isFinite(tensor: Tensor): boolean {
  return mx.scope(() => mx.all(mx.isFinite(tensor)).toInt32()[0] === 1);
}
