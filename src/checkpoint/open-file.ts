import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError, damagedFile } from "./error.ts";

/** A file to read from at any place. Throws CheckpointError where it cannot be opened or ends too early. */
export class OpenFile implements Disposable {
  readonly size: number;
  readonly #descriptor: number;
  readonly #modifiedAtMs: number;

  constructor(readonly path: string) {
    try {
      this.#descriptor = openSync(path, "r");
    } catch (error) {
      throw new CheckpointError(`${path} cannot be read: ${reasonOf(error)}`, { cause: error });
    }
    const { size, mtimeMs } = fstatSync(this.#descriptor);
    this.size = size;
    this.#modifiedAtMs = mtimeMs;
  }

  /** Whether it was written to since it was opened. */
  isChanged(): boolean {
    const { size, mtimeMs } = fstatSync(this.#descriptor);
    return size !== this.size || mtimeMs !== this.#modifiedAtMs;
  }

  /** Fills `target`, or its bytes from `first` up to `last`, with what lies at `position`. */
  read(position: number, target: Uint8Array, first = 0, last = target.length): void {
    for (let filled = first; filled < last;) {
      const wanted = last - filled;
      const count = readSync(this.#descriptor, target, filled, wanted, position + filled - first);
      if (count === 0) {
        throw damagedFile(this.path, `it ends before byte ${position + last - first}`);
      }
      filled += count;
    }
  }

  /** A copy of `count` bytes that begin at `position`. */
  bytes(position: number, count: number): Buffer {
    const copy = Buffer.alloc(count);
    this.read(position, copy);
    return copy;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}
