import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { CheckpointError } from "./error.ts";
import { OpenFile } from "./open-file.ts";
import type { TensorLocation } from "./tensor-files.ts";

/** Where a table lies: f32 values, row-major, from byte `begin` of the file on. */
interface TablePlace {
  readonly path: string;
  readonly begin: number;
  readonly width: number;
}

/** Smaller ones are not worth a read for each row. */
const SMALLEST_TABLE_BYTES = 1 << 20;

/**
 * A table of f32 numbers that stays in its file: only rows that occur are read, and none is kept. It is read, not
 * mapped, so that a file that is cut short is an error and not the end of the process. A file that is replaced or
 * deleted stays readable, one that is written to is refused.
 */
export class TableFile {
  readonly #file: OpenFile;
  readonly #place: TablePlace;
  #room = new Float32Array();

  /** Throws CheckpointError where the file cannot be opened. */
  constructor(place: TablePlace) {
    this.#file = new OpenFile(place.path);
    this.#place = place;
  }

  /**
   * These rows [N, width], float32. Indices must lie within the table. Throws CheckpointError where the file is no
   * longer what was opened.
   */
  take(indices: Int32Array): Tensor {
    const { begin, width } = this.#place;
    const values = this.#roomFor(indices.length * width);
    const rowBytes = width * Float32Array.BYTES_PER_ELEMENT;
    const bytes = new Uint8Array(values.buffer);
    try {
      indices.forEach((row, i) => {
        this.#file.read(begin + row * rowBytes, bytes, i * rowBytes, (i + 1) * rowBytes);
      });
    } finally {
      this.#requireUnchanged(); // also tells why it ended too early
    }
    return mx.fromFloat32(values, [indices.length, width]);
  }

  /** The start of one buffer that all calls share: what they return is a copy. */
  #roomFor(count: number): Float32Array<ArrayBuffer> {
    if (this.#room.length < count) this.#room = new Float32Array(count);
    return this.#room.subarray(0, count);
  }

  #requireUnchanged(): void {
    if (!this.#file.isChanged()) return;
    throw new CheckpointError(
      `${this.#file.path} was written to while it is in use; restart mlxcel to load it as it is now`,
    );
  }
}

/** The table that lies at byte `begin` of its file; undefined where it is small, or none of f32 numbers. */
export function tableFileOf(location: TensorLocation, begin: number): TableFile | undefined {
  const { file: path, dtype, shape, byteLength } = location;
  if (dtype !== "F32" || shape.length !== 2 || byteLength < SMALLEST_TABLE_BYTES) return undefined;
  const [, width = 0] = shape;
  return new TableFile({ path, begin, width });
}
