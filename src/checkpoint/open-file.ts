import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { reasonOf } from "../native/thrown.ts";
import { CheckpointError } from "./error.ts";

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

  /** Fills `target` with what lies at `position`. */
  read(position: number, target: Uint8Array): void {
    for (let filled = 0; filled < target.length;) {
      const wanted = target.length - filled;
      const count = readSync(this.#descriptor, target, filled, wanted, position + filled);
      if (count === 0) {
        throw new CheckpointError(
          `${this.path} is damaged or incomplete: it ends before byte ${position + target.length}; download it again`,
        );
      }
      filled += count;
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}
