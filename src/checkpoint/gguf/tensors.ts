import * as mx from "../../../ffi/index.ts";
import type { Quantized, Tensor } from "../../../ffi/index.ts";
import { type TableFile, tableFileOf } from "../table-file.ts";
import { prevailingDtype, type TensorFiles, type TensorLocation } from "../tensor-files.ts";
import type { GgufTensor } from "./header.ts";
import type { GgufModel } from "./model.ts";
import { OpenFile } from "../open-file.ts";
import { blockPackings } from "./pack.ts";
import { FLOATS, readQuantized, readTensor } from "./read-tensor.ts";
import { byFamilyName, type NamedTensor } from "./tensor-names.ts";

/**
 * The tensors of a GGUF file by the family's names, read when they are asked for: those that MLX can compute with in
 * its layout, other quantised ones decoded.
 */
export class GgufTensors implements TensorFiles {
  readonly path: string;
  readonly locations: ReadonlyMap<string, TensorLocation>;
  readonly storedDtype: string;
  readonly #tensors: ReadonlyMap<string, NamedTensor>;
  readonly #opened = new Map<string, Tensor | Quantized>();
  /** What all tensors become, so that a network computes in one type; undefined: f32 what is decoded, others stay. */
  readonly #halfDtype: "float16" | "bfloat16" | undefined;

  /** Throws CheckpointError naming a tensor that the architecture does not have. */
  constructor({ header, architecture }: GgufModel, computeDtype: "float32" | "stored") {
    this.path = header.path;
    this.#tensors = byFamilyName(header, architecture);
    this.locations = new Map(
      [...this.#tensors].map(([name, tensor]) => [name, locationOf(header.path, tensor)]),
    );
    const types = [...header.tensors.values()].map(({ type: { name: dtype }, begin, end }) => ({
      ...{ dtype, byteLength: end - begin },
    }));
    this.storedDtype = prevailingDtype(types);
    const isHalf = computeDtype === "stored" && this.storedDtype !== "F32";
    // the scales of quantised ones are f16
    const isBrain = types.every(({ dtype }) => dtype === "BF16" || dtype === "F32");
    this.#halfDtype = isHalf ? (isBrain ? "bfloat16" : "float16") : undefined;
  }

  tensor(name: string): Tensor | Quantized {
    let tensor = this.#opened.get(name);
    if (tensor === undefined) {
      tensor = mx.keep(this.#read(name));
      this.#opened.set(name, tensor);
    }
    return tensor;
  }

  tableFile(name: string): TableFile | undefined {
    const tensor = this.#tensors.get(name);
    if (tensor?.type.name !== "F32" || tensor.offset !== 0) return undefined;
    return tableFileOf(locationOf(this.path, tensor), tensor.begin);
  }

  *opened(): Generator<Tensor> {
    for (const stored of this.#opened.values()) {
      if (stored instanceof mx.Tensor) yield stored;
      else yield* [stored.packed, stored.scales, ...(stored.biases ? [stored.biases] : [])];
    }
  }

  #read(name: string): Tensor | Quantized {
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) throw new Error(`no tensor "${name}" was found in ${this.path}`);
    using file = new OpenFile(this.path);
    const packing = packingOf(tensor);
    if (packing) {
      const dtype = this.#halfDtype ? "float16" : "float32";
      return readQuantized(file, tensor, packing, dtype);
    }
    return mx.scope(() => {
      const stored = readTensor(file, tensor, this.#halfDtype ? "float16" : "float32");
      const shifted =
        tensor.offset === 0 ? stored : mx.add(stored, mx.scalar(tensor.offset, stored.dtype));
      const result = this.#halfDtype === undefined ? shifted : mx.astype(shifted, this.#halfDtype);
      mx.evaluate(result);
      return result;
    });
  }
}

function locationOf(file: string, tensor: GgufTensor): TensorLocation {
  const { type, shape, begin, end } = tensor;
  const packing = packingOf(tensor)?.packing;
  // to those who take it, what is decoded is f32
  const dtype = packing || FLOATS.has(type.name) ? type.name : "F32";
  return { file, dtype, shape, byteLength: end - begin, ...(packing && { packing }) };
}

function packingOf({ type, shape }: GgufTensor) {
  return shape.length === 2 ? blockPackings.get(type.name) : undefined;
}
