import { CheckpointError } from "../error.ts";
import type { Cursor } from "./cursor.ts";

type NumberArray = Float64Array<ArrayBuffer>;

export type MetadataValue = number | boolean | string | readonly string[] | NumberArray;

/**
 * The keys and values of a GGUF file. Getters throw CheckpointError naming the key where a value is of another kind,
 * and, unless they are optional, where it is missing.
 */
export class Metadata {
  readonly #values: ReadonlyMap<string, MetadataValue>;

  constructor(
    /** The file, to be named in errors. */
    readonly path: string,
    values: ReadonlyMap<string, MetadataValue>,
  ) {
    this.#values = values;
  }

  keys(): Iterable<string> {
    return this.#values.keys();
  }

  optional(key: string): MetadataValue | undefined {
    return this.#values.get(key);
  }

  text(key: string): string {
    return this.optionalText(key) ?? this.#missing(key);
  }

  optionalText(key: string): string | undefined {
    const value = this.#values.get(key);
    if (value === undefined || typeof value === "string") return value;
    throw this.fault(key, "must be a text");
  }

  flag(key: string, otherwise: boolean): boolean {
    const value = this.#values.get(key);
    if (value === undefined) return otherwise;
    if (typeof value === "boolean") return value;
    throw this.fault(key, "must be true or false");
  }

  /** A natural number. */
  count(key: string): number {
    return this.optionalCount(key) ?? this.#missing(key);
  }

  optionalCount(key: string): number | undefined {
    const value = this.optionalNumber(key);
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return value;
    throw this.fault(key, `is ${value}, it must be a natural number`);
  }

  number(key: string): number {
    return this.optionalNumber(key) ?? this.#missing(key);
  }

  optionalNumber(key: string): number | undefined {
    const value = this.#values.get(key);
    if (value === undefined || typeof value === "number") return value;
    throw this.fault(key, "must be a number");
  }

  texts(key: string): readonly string[] {
    return this.optionalTexts(key) ?? this.#missing(key);
  }

  optionalTexts(key: string): readonly string[] | undefined {
    const value = this.#values.get(key);
    if (value === undefined || isTexts(value)) return value;
    throw this.fault(key, "must be a list of texts");
  }

  optionalNumbers(key: string): NumberArray | undefined {
    const value = this.#values.get(key);
    if (value === undefined || value instanceof Float64Array) return value;
    throw this.fault(key, "must be a list of numbers");
  }

  /** What is wrong with a key, as an error to throw. */
  fault(key: string, what: string): CheckpointError {
    return new CheckpointError(`${this.path}: metadata key "${key}" ${what}`);
  }

  #missing(key: string): never {
    throw this.fault(key, "is missing; the file is incomplete or of another kind");
  }
}

function isTexts(value: MetadataValue): value is readonly string[] {
  return Array.isArray(value);
}

/** Of a key: the length of its name, its type, a value of one byte. */
const LEAST_ENTRY_BYTES = 13;
const BOOL = 7;
const STRING = 8;
const ARRAY = 9;

interface NumberType {
  readonly bytes: number;
  read(source: Buffer, at: number): number;
}

/** By the number that stands for them; a truth value is a byte. */
const numberTypes: ReadonlyMap<number, NumberType> = new Map([
  [0, { bytes: 1, read: (source, at) => source.readUInt8(at) }],
  [1, { bytes: 1, read: (source, at) => source.readInt8(at) }],
  [2, { bytes: 2, read: (source, at) => source.readUInt16LE(at) }],
  [3, { bytes: 2, read: (source, at) => source.readInt16LE(at) }],
  [4, { bytes: 4, read: (source, at) => source.readUInt32LE(at) }],
  [5, { bytes: 4, read: (source, at) => source.readInt32LE(at) }],
  [6, { bytes: 4, read: (source, at) => source.readFloatLE(at) }],
  [BOOL, { bytes: 1, read: (source, at) => source.readUInt8(at) }],
  [10, { bytes: 8, read: (source, at) => Number(source.readBigUInt64LE(at)) }],
  [11, { bytes: 8, read: (source, at) => Number(source.readBigInt64LE(at)) }],
  [12, { bytes: 8, read: (source, at) => source.readDoubleLE(at) }],
]);

/** Reads `count` keys with their values. Throws CheckpointError naming what does not fit. */
export function readMetadata(cursor: Cursor, count: number): Metadata {
  cursor.requireRoom("metadata keys", count, LEAST_ENTRY_BYTES);
  const values = new Map<string, MetadataValue>();
  for (let i = 0; i < count; i++) {
    const key = cursor.text();
    if (values.has(key)) throw cursor.damage(`metadata key "${key}" occurs twice`);
    values.set(key, readValue(cursor, key));
  }
  return new Metadata(cursor.path, values);
}

function readValue(cursor: Cursor, key: string): MetadataValue {
  const type = cursor.uint32();
  if (type === STRING) return cursor.text();
  if (type === ARRAY) return readArray(cursor, key);
  const { bytes, read } = numberType(cursor, key, type);
  const value = read(cursor.take(bytes), 0);
  return type === BOOL ? value !== 0 : value;
}

function readArray(cursor: Cursor, key: string): readonly string[] | NumberArray {
  const type = cursor.uint32();
  const count = cursor.uint64();
  if (type === STRING) {
    cursor.requireRoom(`texts of "${key}"`, count, 8);
    return Array.from({ length: count }, () => cursor.text());
  }
  const { bytes, read } = numberType(cursor, key, type);
  cursor.requireRoom(`numbers of "${key}"`, count, bytes);
  const source = cursor.take(count * bytes);
  return Float64Array.from({ length: count }, (_, i) => read(source, i * bytes));
}

function numberType(cursor: Cursor, key: string, type: number): NumberType {
  const found = numberTypes.get(type);
  if (found) return found;
  throw cursor.damage(
    `metadata key "${key}" has ${type === ARRAY ? "lists within a list" : `the unknown type ${type}`}`,
  );
}
