/** From blocks of quantised values to the layout of MLX: no value changes. */
import type { Packing } from "../../../ffi/index.ts";
import { half } from "./dequantize.ts";

/** Blocks of one type as MLX has them: a scale and a bias for each, and the values as natural numbers. */
export interface BlockPacking {
  readonly packing: Packing;
  /** Bytes of a block's values in MLX's layout. */
  readonly packedBytes: number;
  /** Writes the values of the block at `at` to `to` of `packed`. */
  pack(blocks: Uint8Array, at: number, packed: Uint8Array, to: number): void;
  scale(blocks: Uint8Array, at: number): number;
  bias(blocks: Uint8Array, at: number): number;
}

const GROUP_SIZE = 32;

const affine = (bits: number) => ({
  packing: { groupSize: GROUP_SIZE, bits, mode: "affine" } as const,
  packedBytes: (GROUP_SIZE * bits) / 8,
  scale: half,
});

/** Value i of a file lies beside value 16 + i, in MLX values follow each other, low halves first. */
function packNibbles(blocks: Uint8Array, at: number, packed: Uint8Array, to: number): void {
  for (let i = 0; i < 8; i++) {
    const first = blocks[at + 2 * i]!;
    const second = blocks[at + 2 * i + 1]!;
    packed[to + i] = (first & 15) | ((second & 15) << 4);
    packed[to + 8 + i] = (first >> 4) | (second & 0xf0);
  }
}

/** By the name of the type. All others have to be decoded. */
export const blockPackings: ReadonlyMap<string, BlockPacking> = new Map([
  [
    "Q8_0",
    {
      ...affine(8),
      bias: (blocks: Uint8Array, at: number) => -128 * half(blocks, at),
      pack(blocks: Uint8Array, at: number, packed: Uint8Array, to: number) {
        for (let i = 0; i < GROUP_SIZE; i++) packed[to + i] = blocks[at + 2 + i]! ^ 0x80;
      },
    },
  ],
  [
    "Q4_0",
    {
      ...affine(4),
      bias: (blocks: Uint8Array, at: number) => -8 * half(blocks, at),
      pack: (blocks: Uint8Array, at: number, packed: Uint8Array, to: number) =>
        packNibbles(blocks, at + 2, packed, to),
    },
  ],
  [
    "Q4_1",
    {
      ...affine(4),
      bias: (blocks: Uint8Array, at: number) => half(blocks, at + 2),
      pack: (blocks: Uint8Array, at: number, packed: Uint8Array, to: number) =>
        packNibbles(blocks, at + 4, packed, to),
    },
  ],
]);
