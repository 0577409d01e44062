/** GGUF files made on the fly: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readGgufHeader, type GgufTensor } from "../src/checkpoint/gguf/header.ts";
import type { MetadataValue } from "../src/checkpoint/gguf/metadata.ts";
import { fixture } from "./fixtures/fixtures.ts";

/** The file of a fixture. */
export function ggufFixture(name: string): string {
  return join(fixture(name), "model.gguf");
}

/** Numbers as they are to be stored, where another type than u32, f32 and lists of these is wanted. */
interface TypedValue {
  readonly type: number;
  readonly bytes: Uint8Array;
}

export interface GgufTensorBytes {
  readonly type: number;
  /** Row-major. */
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  /** Claimed instead of where the bytes lie. */
  readonly offset?: number;
}

export interface GgufParts {
  readonly version?: number;
  readonly alignment?: number;
  readonly metadata: ReadonlyMap<string, MetadataValue | TypedValue>;
  readonly tensors?: ReadonlyMap<string, GgufTensorBytes>;
  /** Claimed instead of how many there are. */
  readonly tensorCount?: number;
  readonly keyCount?: number;
}

/** The bytes of a GGUF file with these parts. */
export function ggufBytes(parts: GgufParts): Uint8Array {
  const { version = 3, alignment = 32, metadata, tensors = new Map() } = parts;
  const header = [
    Buffer.from("GGUF"),
    u32(version),
    u64(parts.tensorCount ?? tensors.size),
    u64(parts.keyCount ?? metadata.size),
    ...[...metadata].flatMap(([key, value]) => [text(key), stored(value)]),
  ];
  const data: Uint8Array[] = [];
  let offset = 0;
  for (const [name, { type, shape, bytes, offset: claimed }] of tensors) {
    const axes = [...shape].reverse();
    header.push(text(name), u32(axes.length), ...axes.map(u64), u32(type), u64(claimed ?? offset));
    data.push(padded(bytes, alignment));
    offset += Math.ceil(bytes.length / alignment) * alignment;
  }
  return Buffer.concat([padded(Buffer.concat(header), alignment), ...data]);
}

/** The parts of a fixture's file, to be changed. */
export function partsOf(name: string): {
  metadata: Map<string, MetadataValue | TypedValue>;
  tensors: Map<string, GgufTensorBytes>;
} {
  const path = ggufFixture(name);
  const { metadata, tensors } = readGgufHeader(path);
  const file = readFileSync(path);
  const types = new Map([...TYPE_NUMBERS].map(([number, type]) => [type, number]));
  return {
    metadata: new Map([...metadata.keys()].map((key) => [key, metadata.optional(key) ?? 0])),
    tensors: new Map(
      [...tensors].map(([tensor, { type, shape, begin, end }]: [string, GgufTensor]) => [
        tensor,
        { type: types.get(type.name) ?? -1, shape, bytes: file.subarray(begin, end) },
      ]),
    ),
  };
}

const TYPE_NUMBERS: readonly (readonly [number, string])[] = [
  [0, "F32"],
  [1, "F16"],
  [8, "Q8_0"],
];

const STRING = 8;
const ARRAY = 9;

function stored(value: MetadataValue | TypedValue): Uint8Array {
  if (typeof value === "string") return Buffer.concat([u32(STRING), text(value)]);
  if (typeof value === "boolean") return Buffer.concat([u32(7), Uint8Array.of(value ? 1 : 0)]);
  if (typeof value === "number") {
    const isCount = Number.isInteger(value) && value >= 0;
    return Buffer.concat([u32(isCount ? 4 : 6), isCount ? u32(value) : f32(value)]);
  }
  if (value instanceof Float64Array) {
    const values = new Uint8Array(Float32Array.from(value).buffer);
    return Buffer.concat([u32(ARRAY), u32(6), u64(value.length), values]);
  }
  if ("bytes" in value) return Buffer.concat([u32(value.type), value.bytes]);
  return Buffer.concat([u32(ARRAY), u32(STRING), u64(value.length), ...value.map(text)]);
}

export function u32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

export function u64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function f32(value: number): Uint8Array {
  return new Uint8Array(Float32Array.of(value).buffer);
}

function text(value: string): Uint8Array {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function padded(bytes: Uint8Array, alignment: number): Uint8Array {
  const length = Math.ceil(bytes.length / alignment) * alignment;
  return Buffer.concat([bytes, new Uint8Array(length - bytes.length)]);
}
