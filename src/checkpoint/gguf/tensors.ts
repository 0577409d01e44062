import * as mx from "../../../ffi/index.ts";
import { CheckpointError } from "../error.ts";
import { prevailingDtype, type TensorFiles, type TensorLocation } from "../tensor-files.ts";
import type { Architecture } from "./architecture.ts";
import { dequantize } from "./dequantize.ts";
import type { GgufTensor } from "./header.ts";
import type { GgufModel } from "./model.ts";
import { OpenFile } from "./open-file.ts";

/** Values that are decoded at a time. */
const CHUNK_VALUES = 1 << 18;

/** Types that are read as they are. */
const FLOATS: ReadonlyMap<string, "float32" | "float16" | "bfloat16"> = new Map([
  ["F32", "float32"],
  ["F16", "float16"],
  ["BF16", "bfloat16"],
]);

interface NamedTensor extends GgufTensor {
  /** Added to every value. */
  readonly offset: number;
}

/**
 * The tensors of a GGUF file by the family's names, read when they are asked for. Quantised ones are decoded: to f32,
 * or to f16 where the rest is computed with as it is stored.
 */
export class GgufTensors implements TensorFiles {
  readonly path: string;
  readonly locations: ReadonlyMap<string, TensorLocation>;
  readonly storedDtype: string;
  readonly #tensors: ReadonlyMap<string, NamedTensor>;
  readonly #opened = new Map<string, mx.Tensor>();
  /** What everything becomes, so that networks compute in one type; undefined: decoded ones f32, others as stored. */
  readonly #halfDtype: "float16" | "bfloat16" | undefined;

  /** Throws CheckpointError naming a tensor that the architecture does not have. */
  constructor({ header, architecture }: GgufModel, computeDtype: "float32" | "stored") {
    this.path = header.path;
    this.#tensors = byFamilyName(header.path, header.tensors, architecture);
    this.locations = new Map(
      [...this.#tensors].map(([name, { type, shape, begin, end }]) => [
        name,
        // decoded tensors are f32 to those who take them
        {
          file: header.path,
          dtype: FLOATS.has(type.name) ? type.name : "F32",
          shape,
          byteLength: end - begin,
        },
      ]),
    );
    this.storedDtype = prevailingDtype(
      [...header.tensors.values()].map(({ type, begin, end }) => ({
        dtype: type.name,
        byteLength: end - begin,
      })),
    );
    const isHalf = computeDtype === "stored" && this.storedDtype !== "F32";
    this.#halfDtype = isHalf ? (this.storedDtype === "BF16" ? "bfloat16" : "float16") : undefined;
  }

  tensor(name: string): mx.Tensor {
    let tensor = this.#opened.get(name);
    if (tensor === undefined) {
      tensor = mx.keep(this.#read(name));
      this.#opened.set(name, tensor);
    }
    return tensor;
  }

  mapped(name: string): mx.Tensor | undefined {
    const tensor = this.#tensors.get(name);
    if (tensor?.type.name !== "F32" || tensor.shape.length !== 2 || tensor.offset !== 0) {
      return undefined;
    }
    const [rows = 0, width = 0] = tensor.shape;
    return mx.mapTable({ path: this.path, begin: tensor.begin, rows, width });
  }

  opened(): Iterable<mx.Tensor> {
    return this.#opened.values();
  }

  #read(name: string): mx.Tensor {
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) throw new Error(`no tensor "${name}" was found in ${this.path}`);
    using file = new OpenFile(this.path);
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

function byFamilyName(
  path: string,
  tensors: ReadonlyMap<string, GgufTensor>,
  { name: architecture, layers, offsets = {} }: Architecture,
): ReadonlyMap<string, NamedTensor> {
  return new Map(
    [...tensors].map(([name, tensor]) => {
      const [, layer, part] = /^(.*)\.(weight|bias)$/.exec(name) ?? [];
      const number = /^blk\.(\d+)\./.exec(name)?.[1];
      const key = layer?.replace(/^blk\.\d+\./, "blk.N.") ?? "";
      const familyLayer = layers[key];
      if (familyLayer === undefined) {
        throw new CheckpointError(
          `${path}: tensor "${name}" is not one of the GGUF architecture "${architecture}" as it is known here`,
        );
      }
      const familyName = `${familyLayer.replace("N", number ?? "N")}.${part}`;
      return [familyName, { ...tensor, offset: offsets[key] ?? 0 }];
    }),
  );
}

/** As stored; quantised values as f32 or f16. */
function readTensor(
  file: OpenFile,
  tensor: GgufTensor,
  decodedDtype: "float32" | "float16",
): mx.Tensor {
  const { type, shape, begin } = tensor;
  const float = FLOATS.get(type.name);
  if (float) return mx.written(shape, float, (bytes) => file.read(begin, bytes));
  return mx.written(shape, decodedDtype, ({ buffer }) => {
    const isHalf = decodedDtype === "float16";
    decode(file, tensor, isHalf ? new Float16Array(buffer) : new Float32Array(buffer));
  });
}

function decode(
  file: OpenFile,
  { type, begin }: GgufTensor,
  target: Float32Array | Float16Array,
): void {
  const chunk = new Float32Array(Math.min(CHUNK_VALUES, target.length));
  const bytesOf = (values: number) => (values / type.blockValues) * type.blockBytes;
  const chunkBytes = new Uint8Array(bytesOf(chunk.length));
  for (let at = 0; at < target.length; at += chunk.length) {
    const values = chunk.subarray(0, target.length - at);
    const blocks = chunkBytes.subarray(0, bytesOf(values.length));
    file.read(begin + bytesOf(at), blocks);
    dequantize(type, blocks, values);
    target.set(values, at);
  }
}
