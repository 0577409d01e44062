import { ptr } from "bun:ffi";

/**
 * A 64-bit out-parameter in stable memory. mlx-c assigns INTO a handle that it finds there, so it is zero before
 * every call: reading clears it.
 */
export class Slot {
  readonly #words = new Uint32Array(new ArrayBuffer(8));
  readonly address: number = ptr(this.#words);

  /** The handle, address or size that the last call left. */
  read(): number {
    const words = this.#words;
    const value = words[0]! + words[1]! * 4294967296;
    words[0] = 0;
    words[1] = 0;
    return value;
  }
}

const shared = new Slot();

/** The address of the out-parameter that nearly every call of this thread uses. */
export const slot = shared.address;

/** What the last call left in the shared slot. */
export function readSlot(): number {
  return shared.read();
}

/** The bool that the last call left in the shared slot. */
export function readFlag(): boolean {
  return (shared.read() & 1) === 1;
}
