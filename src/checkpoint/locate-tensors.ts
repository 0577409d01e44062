import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { SINGLE_WEIGHTS, WEIGHTS_INDEX } from "../hub/file-names.ts";
import { CheckpointError } from "./error.ts";
import { readJson } from "./json-file.ts";
import { isFile } from "./regular-file.ts";
import { readSafetensorsHeader, type StoredTensor } from "./safetensors-header.ts";
import type { TensorLocation } from "./tensor-files.ts";

/** A tensor as a header describes it. */
export interface FileTensor extends TensorLocation, StoredTensor {}

const SHARD = /^model-\d+-of-\d+\.safetensors$/;

const indexSchema = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/**
 * The tensors of a directory: of model.safetensors, or of the shards that an index lists. Throws CheckpointError naming
 * a file that is missing, damaged, or contradicts another one.
 */
export function locateTensors(directory: string): Map<string, FileTensor> {
  const index = join(directory, WEIGHTS_INDEX);
  const shardOf = isFile(index) ? readJson(index, indexSchema).weight_map : undefined;
  const single = join(directory, SINGLE_WEIGHTS);
  const isSingle = isFile(single);
  const listed = shardOf ? [...new Set(Object.values(shardOf))] : [];
  if (isSingle && shardOf && listed.some((shard) => shard !== SINGLE_WEIGHTS)) {
    throw new CheckpointError(
      `${index} lists other files than ${SINGLE_WEIGHTS} beside it; remove the one that is not of this model`,
    );
  }
  requireNoStrays(directory, listed);
  if (shardOf) return locateListed(directory, index, shardOf);
  if (isSingle) return locate(single);
  throw new CheckpointError(explainAbsence(directory));
}

/** Shards of another download or another version would be left out without a word. */
function requireNoStrays(directory: string, listed: readonly string[]): void {
  const stray = namesIn(directory).find((name) => SHARD.test(name) && !listed.includes(name));
  if (stray === undefined) return;
  throw new CheckpointError(
    `${join(directory, stray)} is in no ${WEIGHTS_INDEX}; download that file again, or remove the shard if it is not of this model`,
  );
}

function locateListed(
  directory: string,
  index: string,
  shardOf: Readonly<Record<string, string>>,
): Map<string, FileTensor> {
  const shards = new Map<string, Map<string, FileTensor>>();
  for (const shard of new Set(Object.values(shardOf))) {
    const file = join(directory, shard);
    if (basename(shard) !== shard) {
      throw new CheckpointError(`${index} names "${shard}", which is not a plain file name`);
    }
    if (!isFile(file)) {
      throw new CheckpointError(
        `${file} is missing, but ${WEIGHTS_INDEX} lists it; download it again`,
      );
    }
    shards.set(shard, locate(file));
  }
  const tensors = new Map<string, FileTensor>();
  for (const [name, shard] of Object.entries(shardOf)) {
    const tensor = shards.get(shard)?.get(name);
    if (tensor === undefined) {
      throw new CheckpointError(
        `${index} places tensor "${name}" in ${shard}, which does not hold it; download both again`,
      );
    }
    tensors.set(name, tensor);
  }
  for (const [shard, held] of shards) requireListed(index, shard, { held, shardOf });
  return tensors;
}

interface ShardTensors {
  readonly held: ReadonlyMap<string, FileTensor>;
  readonly shardOf: Readonly<Record<string, string>>;
}

function requireListed(index: string, shard: string, { held, shardOf }: ShardTensors): void {
  const stray = [...held.keys()].find((name) => shardOf[name] !== shard);
  if (stray === undefined) return;
  const other = shardOf[stray];
  const where = other === undefined ? "does not list" : `places in ${other}, which holds it too`;
  throw new CheckpointError(
    `${shard} holds tensor "${stray}", which ${index} ${where}; download all of them again`,
  );
}

function locate(file: string): Map<string, FileTensor> {
  return new Map(
    [...readSafetensorsHeader(file)].map(([name, tensor]) => [
      name,
      { ...tensor, file, byteLength: tensor.end - tensor.begin },
    ]),
  );
}

function explainAbsence(directory: string): string {
  const pickled = namesIn(directory).find((name) => /^pytorch_model.*\.bin$/.test(name));
  if (pickled !== undefined) {
    return `${join(directory, pickled)} is a pickle file, which is not read because loading it can run code; convert it to model.safetensors`;
  }
  return `${join(directory, SINGLE_WEIGHTS)} is missing; download the model in the safetensors format`;
}

function namesIn(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
