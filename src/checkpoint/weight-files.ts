import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "./error.ts";
import { readJson } from "./json-file.ts";
import { isFile } from "./regular-file.ts";
import { readSafetensorsHeader, type StoredTensor } from "./safetensors-header.ts";

/** Where a tensor lies. */
export interface TensorLocation extends StoredTensor {
  readonly file: string;
}

const SINGLE_FILE = "model.safetensors";
const INDEX_FILE = "model.safetensors.index.json";

const indexSchema = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/**
 * Finds and checks the safetensors files of a directory: one model.safetensors, or the shards that an index lists.
 * Where both exist the single file wins, as in the reference loaders. Throws CheckpointError naming the file that
 * is missing or damaged.
 */
export function locateTensors(directory: string): Map<string, TensorLocation> {
  const single = join(directory, SINGLE_FILE);
  if (isFile(single)) return locate(single);
  const index = join(directory, INDEX_FILE);
  if (isFile(index)) return locateInShards(directory, index);
  throw new CheckpointError(explainAbsence(directory));
}

function locate(file: string): Map<string, TensorLocation> {
  return new Map(
    [...readSafetensorsHeader(file)].map(([name, tensor]) => [name, { ...tensor, file }]),
  );
}

function locateInShards(directory: string, index: string): Map<string, TensorLocation> {
  const shardOf = readJson(index, indexSchema).weight_map;
  const shards = new Map<string, Map<string, TensorLocation>>();
  for (const shard of new Set(Object.values(shardOf))) {
    const file = join(directory, shard);
    if (basename(shard) !== shard) {
      throw new CheckpointError(`${index} names "${shard}", which is not a plain file name`);
    }
    if (!isFile(file)) {
      throw new CheckpointError(
        `${file} is missing, but ${INDEX_FILE} lists it; download it again`,
      );
    }
    shards.set(shard, locate(file));
  }
  const tensors = new Map<string, TensorLocation>();
  for (const [name, shard] of Object.entries(shardOf)) {
    const tensor = shards.get(shard)?.get(name);
    if (tensor === undefined) {
      throw new CheckpointError(
        `${index} places tensor "${name}" in ${shard}, which does not hold it; download both again`,
      );
    }
    tensors.set(name, tensor);
  }
  return tensors;
}

function explainAbsence(directory: string): string {
  const names = existsSync(directory) ? readdirSync(directory) : [];
  const pickled = names.find((name) => /^pytorch_model.*\.bin$/.test(name));
  if (pickled !== undefined) {
    return `${join(directory, pickled)} is a pickle file, which is not read because loading it can run code; convert it to model.safetensors`;
  }
  return `${join(directory, SINGLE_FILE)} is missing; download the model in the safetensors format`;
}
