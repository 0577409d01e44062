import { CheckpointError } from "../error.ts";
import { refuseLfsPointer, requireFile } from "../regular-file.ts";
import { blockTypes, unsupportedTypes, type BlockType } from "./block-types.ts";
import { Cursor } from "./cursor.ts";
import { readMetadata, type Metadata } from "./metadata.ts";
import { OpenFile } from "../open-file.ts";

/** One tensor as the header describes it. */
export interface GgufTensor {
  readonly type: BlockType;
  /** Row-major, as everywhere else; the file has it the other way round. */
  readonly shape: readonly number[];
  /** First and last-plus-one byte in the file. */
  readonly begin: number;
  readonly end: number;
}

/** What a GGUF file says before its tensors. */
export interface GgufHeader {
  readonly path: string;
  readonly metadata: Metadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** Vocabularies of a million tokens stay far below; more would only fill the memory. */
const MAX_HEADER_BYTES = 100_000_000;
const MAGIC = "GGUF";
const MAGIC_AND_VERSION_BYTES = 8;
/** Of a tensor: the length of its name, the number of its axes, its type, its offset. */
const LEAST_TENSOR_BYTES = 24;
const MAX_AXES = 4;
const DEFAULT_ALIGNMENT = 32;
const MAX_ALIGNMENT = 1 << 20;

/**
 * Reads and checks the header of a GGUF file without touching its tensors: versions 2 and 3, little endian. Throws
 * CheckpointError naming the file and what is wrong with it: cut short, counts and offsets that do not fit, types
 * that are not read, one part of several.
 */
export function readGgufHeader(path: string): GgufHeader {
  requireFile(path);
  using file = new OpenFile(path);
  requireReadable(file);
  const cursor = new Cursor(file, MAX_HEADER_BYTES);
  cursor.take(MAGIC_AND_VERSION_BYTES);
  const tensorCount = cursor.uint64();
  const metadata = readMetadata(cursor, cursor.uint64());
  requireWhole(path, metadata);
  const tensors = readTensors(cursor, tensorCount, alignmentOf(metadata));
  requireInside(cursor, file.size, tensors);
  return { path, metadata, tensors };
}

function requireReadable(file: OpenFile): void {
  const { path } = file;
  const start = file.bytes(0, Math.min(file.size, 64));
  const text = start.toString("latin1");
  refuseLfsPointer(path, text);
  if (!text.startsWith(MAGIC)) {
    throw new CheckpointError(`${path} is not a GGUF file; download it again`);
  }
  const version = start.length < MAGIC_AND_VERSION_BYTES ? 0 : start.readUInt32LE(MAGIC.length);
  if (version === 2 || version === 3) return;
  const why =
    version !== 0 && version % 0x1_0000 === 0
      ? "is a big-endian GGUF file; use the little-endian one"
      : `has the GGUF version ${version}, supported are 2 and 3; convert the model again`;
  throw new CheckpointError(`${path} ${why}`);
}

function requireWhole(path: string, metadata: Metadata): void {
  const parts = metadata.optionalCount("split.count") ?? 1;
  if (parts <= 1) return;
  throw new CheckpointError(
    `${path} is one of ${parts} parts; join them with "llama-gguf-split --merge" and give the whole file`,
  );
}

function alignmentOf(metadata: Metadata): number {
  const key = "general.alignment";
  const alignment = metadata.optionalCount(key) ?? DEFAULT_ALIGNMENT;
  if (alignment > 0 && alignment % 8 === 0 && alignment <= MAX_ALIGNMENT) return alignment;
  throw metadata.fault(key, `is ${alignment}, it must be a multiple of 8`);
}

/** A tensor before it is known where the header ends, from where offsets count. */
interface DescribedTensor extends Pick<GgufTensor, "type" | "shape"> {
  readonly offset: number;
  readonly bytes: number;
}

function readTensors(
  cursor: Cursor,
  count: number,
  alignment: number,
): ReadonlyMap<string, GgufTensor> {
  cursor.requireRoom("tensors", count, LEAST_TENSOR_BYTES);
  const described = new Map<string, DescribedTensor>();
  for (let i = 0; i < count; i++) {
    const name = cursor.text();
    if (described.has(name)) throw cursor.damage(`tensor "${name}" occurs twice`);
    described.set(name, readDescription(cursor, name));
  }
  const start = Math.ceil(cursor.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  for (const [name, { offset, bytes, ...tensor }] of described) {
    if (offset % alignment !== 0) {
      throw cursor.damage(`tensor "${name}" starts at ${offset}, no multiple of ${alignment}`);
    }
    const begin = start + offset;
    tensors.set(name, { ...tensor, begin, end: begin + bytes });
  }
  return tensors;
}

function readDescription(cursor: Cursor, name: string): DescribedTensor {
  const axes = cursor.uint32();
  if (axes === 0 || axes > MAX_AXES) throw cursor.damage(`tensor "${name}" has ${axes} axes`);
  const shape = Array.from({ length: axes }, () => cursor.uint64()).reverse();
  const type = typeNumbered(cursor, name, cursor.uint32());
  const values = shape.reduce((product, size) => product * size, 1);
  const rowLength = shape.at(-1) ?? 0;
  if (values === 0 || !Number.isSafeInteger(values) || rowLength % type.blockValues !== 0) {
    throw cursor.damage(`tensor "${name}" of ${type.name} has the shape [${shape.join(", ")}]`);
  }
  const bytes = (values / type.blockValues) * type.blockBytes;
  return { type, shape, offset: cursor.uint64(), bytes };
}

function typeNumbered({ path }: Cursor, tensor: string, number: number): BlockType {
  const type = blockTypes.get(number);
  if (type) return type;
  const name = unsupportedTypes.get(number) ?? `number ${number}`;
  const known = [...blockTypes.values()].map((each) => each.name).join(", ");
  throw new CheckpointError(
    `${path}: tensor "${tensor}" is of the type ${name}, which is not supported (known: ${known})`,
  );
}

function requireInside(
  cursor: Cursor,
  fileBytes: number,
  tensors: ReadonlyMap<string, GgufTensor>,
): void {
  let covered = cursor.position;
  for (const [name, { begin, end }] of [...tensors].sort(([, a], [, b]) => a.begin - b.begin)) {
    if (begin < covered) throw cursor.damage(`tensor "${name}" overlaps what lies before it`);
    if (end > fileBytes) {
      throw cursor.damage(`tensor "${name}" ends at byte ${end}, the file at ${fileBytes}`);
    }
    covered = end;
  }
}
