import * as mx from "../../ffi/index.ts";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError } from "./error.ts";
import { type FileTensor, locateTensors } from "./locate-tensors.ts";
import type { Quantization } from "./quantization.ts";
import { findQuantized, type QuantizedMatrix } from "./quantized-matrix.ts";
import { type TableFile, tableFileOf } from "./table-file.ts";
import { prevailingDtype, type TensorFiles, type TensorLocation } from "./tensor-files.ts";

/** Types of weights, in safetensors' spelling. Integers would be computed with as well, to no meaning. */
export const FLOATS: ReadonlySet<string> = new Set(["F16", "BF16", "F32", "F64"]);

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

  tableFile(name: string): TableFile | undefined {
    const location = this.#stored.get(name);
    return location && tableFileOf(location, location.begin);
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
