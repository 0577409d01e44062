import type { BlockType } from "./block-types.ts";

/**
 * From blocks of quantised values to f32, exactly: every product fits a double, so that each value is rounded once.
 * Layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h.
 */

/** Decodes one block at `at` of `blocks` to `to` of `out`. */
type DecodeBlock = (blocks: Uint8Array, at: number, out: Float32Array, to: number) => void;

/** f16 by its bits. */
const halves = new Float32Array(
  new Float16Array(Uint16Array.from({ length: 0x1_0000 }, (_, bits) => bits).buffer),
);

/** f16 at a place, as a number. */
export function half(blocks: Uint8Array, at: number): number {
  return halves[blocks[at]! | (blocks[at + 1]! << 8)]!;
}

/** d f16, 16 bytes of nibbles: value i in the low half of byte i, value 16 + i in its high half. */
const q4_0: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at);
  for (let i = 0; i < 16; i++) {
    const pair = blocks[at + 2 + i]!;
    out[to + i] = d * ((pair & 15) - 8);
    out[to + 16 + i] = d * ((pair >> 4) - 8);
  }
};

/** As Q4_0, with a minimum m f16 behind d. */
const q4_1: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at);
  const m = half(blocks, at + 2);
  for (let i = 0; i < 16; i++) {
    const pair = blocks[at + 4 + i]!;
    out[to + i] = d * (pair & 15) + m;
    out[to + 16 + i] = d * (pair >> 4) + m;
  }
};

/** As Q4_0, with a fifth bit of each value in the 4 bytes between d and the nibbles. */
const q5_0: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at);
  for (let i = 0; i < 16; i++) {
    const pair = blocks[at + 6 + i]!;
    out[to + i] = d * (((pair & 15) | (bit(blocks, at + 2, i) << 4)) - 16);
    out[to + 16 + i] = d * (((pair >> 4) | (bit(blocks, at + 2, 16 + i) << 4)) - 16);
  }
};

/** As Q4_1, with a fifth bit of each value as in Q5_0. */
const q5_1: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at);
  const m = half(blocks, at + 2);
  for (let i = 0; i < 16; i++) {
    const pair = blocks[at + 8 + i]!;
    out[to + i] = d * ((pair & 15) | (bit(blocks, at + 4, i) << 4)) + m;
    out[to + 16 + i] = d * ((pair >> 4) | (bit(blocks, at + 4, 16 + i) << 4)) + m;
  }
};

function bit(blocks: Uint8Array, at: number, index: number): number {
  return (blocks[at + (index >> 3)]! >> (index & 7)) & 1;
}

/** d f16, 32 int8. */
const q8_0: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at);
  for (let i = 0; i < 32; i++) out[to + i] = d * int8(blocks[at + 2 + i]!);
};

function int8(byte: number): number {
  return (byte << 24) >> 24;
}

/** 16 bytes of (scale, minimum) nibbles for groups of 16, 64 bytes of 2-bit values, d f16, dmin f16. */
const q2_k: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at + 80);
  const dmin = half(blocks, at + 82);
  for (let group = 0; group < 16; group++) {
    const scales = blocks[at + group]!;
    const scale = d * (scales & 15);
    const minimum = dmin * (scales >> 4);
    const { from, shift } = twoBits(group);
    for (let i = 0; i < 16; i++) {
      const value = (blocks[at + 16 + from + i]! >> shift) & 3;
      out[to + group * 16 + i] = scale * value - minimum;
    }
  }
};

/** Where 2-bit values of a group of 16 lie: 32 bytes hold four runs of 32 values, one in each two bits. */
function twoBits(group: number): { from: number; shift: number } {
  return { from: (group >> 3) * 32 + (group & 1) * 16, shift: ((group >> 1) & 3) * 2 };
}

/** 32 bytes of third bits, 64 bytes of 2-bit values as in Q2_K, 12 bytes of 6-bit scales for groups of 16, d f16. */
const q3_k: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at + 108);
  for (let group = 0; group < 16; group++) {
    const low = (blocks[at + 96 + (group & 7)]! >> (group >> 3 === 0 ? 0 : 4)) & 15;
    const high = (blocks[at + 104 + (group & 3)]! >> ((group >> 2) * 2)) & 3;
    const scale = d * ((low | (high << 4)) - 32);
    const { from, shift } = twoBits(group);
    const third = group >> 1;
    for (let i = 0; i < 16; i++) {
      const value = (blocks[at + 32 + from + i]! >> shift) & 3;
      const isHigh = (blocks[at + (group & 1) * 16 + i]! >> third) & 1;
      out[to + group * 16 + i] = scale * (value - (isHigh ? 0 : 4));
    }
  }
};

/** The 6-bit scale and minimum of a group of 32, packed into 12 bytes. */
function scaleAndMinimum(blocks: Uint8Array, at: number, group: number): readonly [number, number] {
  if (group < 4) return [blocks[at + group]! & 63, blocks[at + 4 + group]! & 63];
  const low = blocks[at + 4 + group]!;
  return [
    (low & 15) | ((blocks[at + group - 4]! >> 6) << 4),
    (low >> 4) | ((blocks[at + group]! >> 6) << 4),
  ];
}

/**
 * d f16, dmin f16, 12 bytes of scales and minimums; in Q5_K (`fifths` 1) 32 bytes of fifth bits, bit g of byte i
 * belonging to value i of group g; 128 bytes, each 32 of which hold two groups, low nibbles first.
 */
const nibblesInGroups =
  (fifths: 0 | 1): DecodeBlock =>
  (blocks, at, out, to) => {
    const d = half(blocks, at);
    const dmin = half(blocks, at + 2);
    for (let group = 0; group < 8; group++) {
      const [s, m] = scaleAndMinimum(blocks, at + 4, group);
      const scale = d * s;
      const minimum = dmin * m;
      const from = at + 16 + fifths * 32 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      for (let i = 0; i < 32; i++) {
        const fifth = (blocks[at + 16 + i]! >> group) & fifths;
        const value = ((blocks[from + i]! >> shift) & 15) | (fifth << 4);
        out[to + group * 32 + i] = scale * value - minimum;
      }
    }
  };
const q4_k = nibblesInGroups(0);
const q5_k = nibblesInGroups(1);

/** 128 bytes of nibbles, 64 bytes of upper two bits, 16 int8 scales for groups of 16, d f16. */
const q6_k: DecodeBlock = (blocks, at, out, to) => {
  const d = half(blocks, at + 208);
  for (let group = 0; group < 16; group++) {
    const scale = d * int8(blocks[at + 192 + group]!);
    const run = group >> 1; // of 32 values
    const odd = (group & 1) * 16;
    const nibbles = at + (run >> 2) * 64 + (run & 1) * 32 + odd;
    const nibbleShift = ((run >> 1) & 1) * 4;
    const upper = at + 128 + (run >> 2) * 32 + odd;
    const upperShift = (run & 3) * 2;
    for (let i = 0; i < 16; i++) {
      const low = (blocks[nibbles + i]! >> nibbleShift) & 15;
      const high = (blocks[upper + i]! >> upperShift) & 3;
      out[to + group * 16 + i] = scale * ((low | (high << 4)) - 32);
    }
  }
};

const decoders: ReadonlyMap<string, DecodeBlock> = new Map([
  ["Q4_0", q4_0],
  ["Q4_1", q4_1],
  ["Q5_0", q5_0],
  ["Q5_1", q5_1],
  ["Q8_0", q8_0],
  ["Q2_K", q2_k],
  ["Q3_K", q3_k],
  ["Q4_K", q4_k],
  ["Q5_K", q5_k],
  ["Q6_K", q6_k],
]);

/** Decodes blocks of a quantised type from `blocks`, as many as fill `out`. Throws for a type that is none. */
export function dequantize(
  { name, blockValues, blockBytes }: BlockType,
  blocks: Uint8Array,
  out: Float32Array,
): void {
  const decode = decoders.get(name);
  if (decode === undefined) throw new Error(`${name} is not a quantised type`);
  for (let at = 0, to = 0; to < out.length; at += blockBytes, to += blockValues) {
    decode(blocks, at, out, to);
  }
}
