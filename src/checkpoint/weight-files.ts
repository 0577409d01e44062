import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import { CheckpointError, reasonOf } from "./error.ts";
import { readJson } from "./json-file.ts";
import type { Quantization } from "./quantization.ts";
import { findQuantized, type QuantizedMatrix } from "./quantized-matrix.ts";
import { isFile } from "./regular-file.ts";
import { readSafetensorsHeader, type StoredTensor } from "./safetensors-header.ts";
import { prevailingDtype, type TensorFiles, type TensorLocation } from "./tensor-files.ts";

/** Types of weights, in safetensors' spelling. Integers would be computed with as well, to no meaning. */
export const FLOATS: ReadonlySet<string> = new Set(["F16", "BF16", "F32", "F64"]);

const SINGLE_FILE = "model.safetensors";
const INDEX_FILE = "model.safetensors.index.json";

const indexSchema = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/** A tensor as a header describes it. */
interface FileTensor extends TensorLocation, StoredTensor {}

/** The safetensors files of a directory. mlx reads a tensor from disk when it is evaluated. */
export class SafetensorsFiles implements TensorFiles {
  readonly locations: ReadonlyMap<string, TensorLocation>;
  readonly #stored: ReadonlyMap<string, FileTensor>;
  readonly #quantized: ReadonlyMap<string, QuantizedMatrix>;
  /** Tensors by file, opened when the first tensor of the file is asked for. */
  readonly #opened = new Map<string, Map<string, mx.Tensor>>();

  /**
   * Finds and checks the files; nothing is read yet. Throws CheckpointError naming a missing or damaged file, or a
   * layer that is not quantised as `quantization` says.
   */
  constructor(
    readonly path: string,
    quantization?: Quantization,
  ) {
    this.#stored = locateTensors(path);
    this.#quantized = findQuantized(this.#stored, quantization);
    const parts = new Set([...this.#quantized.values()].flatMap((matrix) => matrix.parts));
    const dense = [...this.#stored].filter(([name]) => !parts.has(name));
    const matrices = [...this.#quantized].map(([name, { location }]) => [name, location] as const);
    this.locations = new Map<string, TensorLocation>([...dense, ...matrices]);
  }

  get storedDtype(): string {
    const weights = [...this.locations.values()].filter(
      ({ dtype, packing }) => packing || FLOATS.has(dtype),
    );
    return prevailingDtype(weights);
  }

  tensor(name: string): mx.Tensor | mx.Quantized {
    const matrix = this.#quantized.get(name);
    if (!matrix) return this.#tensor(name);
    const [packed, scales, biases] = matrix.parts.map((part) => this.#tensor(part));
    return { packing: matrix.location.packing, packed: packed!, scales: scales!, biases };
  }

  #tensor(name: string): mx.Tensor {
    const file = this.#stored.get(name)?.file;
    if (file === undefined) throw new Error(`no tensor "${name}" was found in ${this.path}`);
    let tensors = this.#opened.get(file);
    if (tensors === undefined) {
      tensors = openFile(file);
      this.#opened.set(file, tensors);
    }
    const tensor = tensors.get(name);
    if (tensor === undefined)
      throw new CheckpointError(`${file} lost tensor "${name}" while loading`);
    return tensor;
  }

  mapped(name: string): mx.Tensor | undefined {
    const location = this.#stored.get(name);
    if (location?.dtype !== "F32" || location.shape.length !== 2) return undefined;
    const { file: path, begin } = location;
    // older files do not align their tensors
    if (begin % Float32Array.BYTES_PER_ELEMENT !== 0) return undefined;
    const [rows = 0, width = 0] = location.shape;
    return mx.mapTable({ path, begin, rows, width });
  }

  *opened(): Generator<mx.Tensor> {
    for (const tensors of this.#opened.values()) yield* tensors.values();
  }
}

function openFile(file: string): Map<string, mx.Tensor> {
  try {
    return mx.keep(mx.loadSafetensors(file).tensors);
  } catch (error) {
    throw new CheckpointError(`${file} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * One model.safetensors, or the shards that an index lists. Where both exist the single file wins, as in the
 * reference loaders.
 */
function locateTensors(directory: string): Map<string, FileTensor> {
  const single = join(directory, SINGLE_FILE);
  if (isFile(single)) return locate(single);
  const index = join(directory, INDEX_FILE);
  if (isFile(index)) return locateInShards(directory, index);
  throw new CheckpointError(explainAbsence(directory));
}

function locate(file: string): Map<string, FileTensor> {
  return new Map(
    [...readSafetensorsHeader(file)].map(([name, tensor]) => [
      name,
      { ...tensor, file, byteLength: tensor.end - tensor.begin },
    ]),
  );
}

function locateInShards(directory: string, index: string): Map<string, FileTensor> {
  const shardOf = readJson(index, indexSchema).weight_map;
  const shards = new Map<string, Map<string, FileTensor>>();
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
