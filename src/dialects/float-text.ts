/** The texts of 0…9999, four digits each, as little-endian words that are stored in one go. */
const FOUR_DIGITS = new Uint32Array(10_000);
{
  const bytes = new Uint8Array(FOUR_DIGITS.buffer);
  for (let i = 0; i < 10_000; i++) {
    const text = String(i).padStart(4, "0");
    for (let j = 0; j < 4; j++) bytes[i * 4 + j] = text.charCodeAt(j);
  }
}

const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const COMMA = 44;
const ZERO_POINT = ZERO | (DOT << 8);

/** Longest text of one float, in bytes: sign, 9 digits, point, exponent, leading zeros. */
export const MAX_FLOAT_BYTES = 24;

/**
 * True if the decimal `decimal` reads back to the f32 `value`, whether a reader rounds once (to f32) or twice
 * (to f64, then to f32). Moving it a little further away keeps off the midpoint between two f32 neighbours,
 * which is the only place where the two ways differ.
 */
function readsBack(decimal: number, value: number): boolean {
  return Math.fround(decimal + (decimal - value) * 1e-6) === value;
}

/**
 * Writes values[start, end), all finite, separated by commas. Each is the decimal with the fewest digits (of 7,
 * 8 and 9) that reads back to the very same f32; nine significant digits are always enough. Several times as
 * fast as `String`: components of normalised vectors are below 1 and take the one loop here.
 *
 * @param bytes has room for `MAX_FLOAT_BYTES` + 1 per value from `at`
 * @param words a view of the same memory
 * @returns the position behind the text
 */
export function writeFloats(
  values: Float32Array,
  [start, end]: readonly [number, number],
  bytes: Uint8Array,
  words: DataView,
  at: number,
): number {
  for (let i = start; i < end; i++) {
    if (i > start) bytes[at++] = COMMA;
    const value = values[i]!;
    const magnitude = Math.abs(value);
    if (!(magnitude >= 1e-4 && magnitude < 1)) {
      at = writeText(
        magnitude >= 1 && magnitude < 1e5 ? plainText(value) : rareText(value),
        bytes,
        at,
      );
      continue;
    }
    if (value < 0) bytes[at++] = MINUS;
    // seven significant digits
    let scale = magnitude >= 0.1 ? 1e7 : magnitude >= 0.01 ? 1e8 : magnitude >= 0.001 ? 1e9 : 1e10;
    let digits = Math.round(magnitude * scale);
    if (!readsBack(digits * (1 / scale), magnitude)) {
      scale *= 10;
      digits = Math.round(magnitude * scale);
      if (!readsBack(digits * (1 / scale), magnitude)) {
        scale *= 10;
        digits = Math.round(magnitude * scale);
      }
    }
    digits *= 1e12 / scale; // twelve decimals, an exact integer
    const high = Math.floor(digits * 1e-8);
    const rest = digits - high * 1e8;
    const middle = (rest * 1e-4) | 0;
    words.setUint16(at, ZERO_POINT, true);
    words.setUint32(at + 2, FOUR_DIGITS[high]!, true);
    words.setUint32(at + 6, FOUR_DIGITS[middle]!, true);
    words.setUint32(at + 10, FOUR_DIGITS[rest - middle * 1e4]!, true);
    at += 14;
    while (bytes[at - 1] === ZERO) at--;
  }
  return at;
}

function writeText(text: string, bytes: Uint8Array, at: number): number {
  for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i);
  return at;
}

/** 1 ≤ |value| < 1e5: vectors that are not normalised. */
function plainText(value: number): string {
  const wholeDigits = Math.floor(Math.log10(Math.abs(value))) + 1;
  for (let digits = 7; digits < 9; digits++) {
    const scale = 10 ** (digits - wholeDigits);
    const decimal = Math.round(value * scale) / scale;
    if (readsBack(decimal, value)) return String(decimal);
  }
  const scale = 10 ** (9 - wholeDigits);
  return String(Math.round(value * scale) / scale);
}

/** Very small and very large values, zeros: rare in embeddings. */
function rareText(value: number): string {
  if (Object.is(value, -0)) return "-0.0";
  for (let digits = 6; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (readsBack(decimal, value)) return String(decimal);
  }
  return String(Number(value.toPrecision(9)));
}
