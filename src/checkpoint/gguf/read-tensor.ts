import * as mx from "../../../ffi/index.ts";
import type { Quantized, Tensor } from "../../../ffi/index.ts";
import { CheckpointError } from "../error.ts";
import { dequantize } from "./dequantize.ts";
import type { GgufTensor } from "./header.ts";
import type { OpenFile } from "../open-file.ts";
import type { BlockPacking } from "./pack.ts";
import type { NamedTensor } from "./tensor-names.ts";

/** Values that are read at a time. */
const CHUNK_VALUES = 1 << 18;

/** Types that are read as they are. */
export const FLOATS: ReadonlyMap<string, "float32" | "float16" | "bfloat16"> = new Map([
  ["F32", "float32"],
  ["F16", "float16"],
  ["BF16", "bfloat16"],
]);

/** What is decoded becomes this. */
type DecodedDtype = "float32" | "float16";

/** A tensor as stored; quantised values in the type `decoded`. */
export function readTensor(file: OpenFile, tensor: GgufTensor, decoded: DecodedDtype): Tensor {
  const { type, shape, begin } = tensor;
  const float = FLOATS.get(type.name);
  if (float) return mx.written(shape, float, (bytes) => file.read(begin, bytes));
  return mx.written(shape, decoded, ({ buffer }) => {
    const target = decoded === "float16" ? new Float16Array(buffer) : new Float32Array(buffer);
    const chunk = new Float32Array(Math.min(CHUNK_VALUES, target.length));
    for (const { blocks, from, to } of chunksOf(file, tensor)) {
      const values = chunk.subarray(0, to - from);
      dequantize(type, blocks, values);
      target.set(values, from);
    }
  });
}

/**
 * A matrix in MLX's layout. Throws CheckpointError naming it where a scale or bias is too large for its type: it would
 * count as infinite.
 */
export function readQuantized(
  file: OpenFile,
  tensor: NamedTensor,
  { packing, packedBytes, ...block }: BlockPacking,
  dtype: DecodedDtype,
): Quantized {
  const { type, shape } = tensor;
  const [rows = 0, width = 0] = shape;
  const groups = [rows, width / packing.groupSize];
  const scales = new Float32Array((rows * width) / packing.groupSize);
  const biases = new Float32Array(scales.length);
  return mx.scope(() => {
    const packed = mx.written([rows, (width * packing.bits) / 32], "uint32", (bytes) => {
      for (const { blocks, from } of chunksOf(file, tensor)) {
        let group = from / type.blockValues;
        for (let at = 0; at < blocks.length; at += type.blockBytes, group++) {
          block.pack(blocks, at, bytes, group * packedBytes);
          scales[group] = block.scale(blocks, at);
          biases[group] = block.bias(blocks, at);
        }
      }
    });
    const [scale, bias] = [scales, biases].map((values) => {
      const result = mx.astype(mx.fromFloat32(values, groups), dtype);
      if (mx.all(mx.isFinite(result)).toInt32()[0] === 1) return result;
      throw new CheckpointError(
        `${file.path}: tensor "${tensor.name}" of ${type.name} has scales that ${dtype} cannot hold; use the model in another storage`,
      );
    });
    return { packing, packed, scales: scale!, biases: bias! };
  });
}

/** Blocks of a tensor, some at a time, with the places of their values. Valid until the next ones are read. */
function* chunksOf(file: OpenFile, { type, shape, begin }: GgufTensor) {
  const count = shape.reduce((product, size) => product * size, 1);
  const bytesOf = (values: number) => (values / type.blockValues) * type.blockBytes;
  const buffer = new Uint8Array(bytesOf(Math.min(CHUNK_VALUES, count)));
  for (let from = 0; from < count; from += CHUNK_VALUES) {
    const to = Math.min(from + CHUNK_VALUES, count);
    const blocks = buffer.subarray(0, bytesOf(to - from));
    file.read(begin + bytesOf(from), blocks);
    yield { blocks, from, to };
  }
}
