import * as mx from "../../ffi/index.ts";
import type { Quantized, Tensor } from "../../ffi/index.ts";
import { type Checkpoint, readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { LoraAdapter } from "../checkpoint/lora.ts";
import { FLOATS } from "../checkpoint/weight-files.ts";
import { NEXT_STEP, NotFinite } from "../pipeline/pending-values.ts";
import { tensorFiles } from "./open-weights.ts";

/**
 * Runs a model for the first time. Where it computes NaN or an infinity, its weights are read once more for the tensor
 * that brings them in: a check at every load would cost all the others a pass over their weights.
 *
 * @throws CheckpointError naming that tensor; NotFinite where all of the network's are finite
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

interface StoredNumbers {
  readonly name: string;
  readonly file: string;
  readonly parts: readonly Tensor[];
}

function damagedTensor(directory: string, base: string | undefined): StoredNumbers | undefined {
  for (const stored of storedNumbers(readCheckpoint(directory, base))) {
    const isWhole = stored.parts.every(isFinite);
    for (const part of stored.parts) part.free();
    if (!isWhole) return stored;
  }
  return undefined;
}

/** An adapter's own tensors apart from those of its base: a merged one does not tell which of them is damaged. */
function* storedNumbers({ adapter, ...whole }: Checkpoint): Generator<StoredNumbers> {
  const files = tensorFiles(whole, "stored");
  for (const [name, { file, dtype, packing }] of files.locations) {
    if (packing || FLOATS.has(dtype)) yield { name, file, parts: partsOf(files.tensor(name)) };
  }
  if (adapter === undefined) return;
  const lora = new LoraAdapter(adapter);
  for (const [name, { dtype }] of lora.headers) {
    if (FLOATS.has(dtype)) yield { name, file: lora.path, parts: [lora.tensor(name)] };
  }
}

function partsOf(tensor: Tensor | Quantized): readonly Tensor[] {
  if (tensor instanceof mx.Tensor) return [tensor];
  const { scales, biases } = tensor;
  return biases ? [scales, biases] : [scales];
}

function isFinite(tensor: Tensor): boolean {
  return mx.scope(() => mx.all(mx.isFinite(tensor)).toInt32()[0] === 1);
}
