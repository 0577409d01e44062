import { Failure } from "../worker/failure.ts";
import { MAX_FLOAT_BYTES, writeFloats } from "./float-text.ts";

/** Throws Failure("internal") if `values` hold NaN or an infinity: JSON has no word for them. */
export function requireFinite(values: Float32Array, what: string): void {
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i]!)) {
      throw new Failure("internal", `the model gave ${what} that is not finite`);
    }
  }
}

/** JSON text in the making, as UTF-8 bytes that can be sent or transferred without another copy. */
export class JsonBuffer {
  #bytes: Buffer<ArrayBuffer>;
  #words: DataView;
  #length = 0;

  /** @param capacity expected size in bytes; it grows when that is too small */
  constructor(capacity: number) {
    this.#bytes = Buffer.from(new ArrayBuffer(capacity));
    this.#words = new DataView(this.#bytes.buffer);
  }

  /** Text that is JSON already. */
  raw(text: string): this {
    this.#reserve(text.length * 3);
    this.#length += this.#bytes.write(text, this.#length, "utf8");
    return this;
  }

  /** UTF-8 bytes that are JSON already. */
  bytes(json: Uint8Array): this {
    this.#reserve(json.length);
    this.#bytes.set(json, this.#length);
    this.#length += json.length;
    return this;
  }

  /** The finite number values[at], which reads back to the very same f32. */
  float(values: Float32Array, at: number): this {
    this.#reserve(MAX_FLOAT_BYTES + 1);
    this.#length = writeFloats(values, [at, at + 1], this.#bytes, this.#words, this.#length);
    return this;
  }

  /** `[v0,v1,…]` of values[start, end), all finite: each element reads back to the very same f32. */
  floats(values: Float32Array, start: number, end: number): this {
    this.#reserve((end - start) * (MAX_FLOAT_BYTES + 1) + 2);
    const bytes = this.#bytes;
    bytes[this.#length++] = 91; // [
    let at = writeFloats(values, [start, end], bytes, this.#words, this.#length);
    bytes[at++] = 93; // ]
    this.#length = at;
    return this;
  }

  /** The little-endian f32 bytes of values[start, end) as a quoted base64 string. */
  base64(values: Float32Array, start: number, end: number): this {
    const bytes = Buffer.from(values.buffer, values.byteOffset + start * 4, (end - start) * 4);
    const text = bytes.toString("base64");
    this.#reserve(text.length + 2);
    this.#length += this.#bytes.write(`"${text}"`, this.#length, "latin1");
    return this;
  }

  finish(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#bytes.buffer, 0, this.#length);
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.from(new ArrayBuffer(Math.max(needed, this.#bytes.length * 2)));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#words = new DataView(grown.buffer);
  }
}
