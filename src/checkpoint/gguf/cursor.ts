import { type CheckpointError, damagedFile } from "../error.ts";
import type { OpenFile } from "../open-file.ts";

/** Read from the file at a time. */
const WINDOW_BYTES = 1 << 20;

/** U+FEFF at the start of a token belongs to it. */
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads little-endian values of a file from front to back, a window at a time. Reading past the end, or past the
 * most that there may be, throws CheckpointError: the file was cut short, or it lies about its sizes.
 */
export class Cursor {
  #window = Buffer.alloc(0);
  /** Place of the window in the file, and of the cursor in the window. */
  #windowStart = 0;
  #at = 0;
  readonly #file: OpenFile;
  readonly #mostBytes: number;

  constructor(file: OpenFile, mostBytes: number) {
    this.#file = file;
    this.#mostBytes = mostBytes;
  }

  get path(): string {
    return this.#file.path;
  }

  /** Bytes from the start of the file. */
  get position(): number {
    return this.#windowStart + this.#at;
  }

  /** Bytes that can still be taken. */
  get remaining(): number {
    return Math.min(this.#file.size, this.#mostBytes) - this.position;
  }

  /** The next bytes, valid until more are taken. */
  take(bytes: number): Buffer {
    if (bytes > this.remaining) throw this.#tooShort();
    if (this.#at + bytes > this.#window.length) this.#moveWindow(bytes);
    const start = this.#at;
    this.#at += bytes;
    return this.#window.subarray(start, this.#at);
  }

  uint32(): number {
    return this.take(4).readUInt32LE();
  }

  /** A count or an offset. Those that a number cannot hold are larger than any file. */
  uint64(): number {
    return Number(this.take(8).readBigUInt64LE());
  }

  /** Text behind its length in bytes. */
  text(): string {
    return utf8.decode(this.take(this.uint64()));
  }

  /** Throws where so many of something of at least `leastBytes` each cannot follow. */
  requireRoom(what: string, count: number, leastBytes: number): void {
    if (count * leastBytes <= this.remaining) return;
    throw this.damage(`it claims ${count} ${what}, more than fit in it`);
  }

  #moveWindow(bytes: number): void {
    const start = this.position;
    const window = Buffer.allocUnsafe(
      Math.min(Math.max(bytes, WINDOW_BYTES), this.#file.size - start),
    );
    this.#file.read(start, window);
    this.#window = window;
    this.#windowStart = start;
    this.#at = 0;
  }

  /** What is wrong with the file, as an error to throw. */
  damage(what: string): CheckpointError {
    return damagedFile(this.path, what);
  }

  #tooShort(): CheckpointError {
    const { size } = this.#file;
    return this.damage(
      size > this.#mostBytes
        ? `its header claims more than ${this.#mostBytes} bytes`
        : `it ends after ${size} bytes, before all that it announces`,
    );
  }
}
