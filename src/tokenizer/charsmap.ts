const CHILD_HAS_VALUE = 1 << 8;
const LABEL_MASK = 0x800000ff | 0;
const VALUE_MASK = 0x7fffffff;
/** Longer clusters are mapped character by character, as in the reference. */
const MAX_CLUSTER_BYTES = 5;
/** Results kept by grapheme; real texts use few different ones. */
const MAX_REMEMBERED = 65_536;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const utf8 = new TextEncoder();

/**
 * SentencePiece's precompiled normalization map (`precompiled_charsmap`): a double-array trie over UTF-8 bytes whose
 * values point into a pool of zero-terminated replacements. Layout: size of the trie in bytes (u32, little endian),
 * the trie's units (u32 each), the pool. A unit holds a label (low byte), whether its child carries a value (bit 8),
 * and the offset to its children; a value unit holds the place in the pool.
 */
export class Charsmap {
  readonly #units: Int32Array;
  readonly #pool: Uint8Array;
  readonly #remembered = new Map<string, string>();

  /** Takes the base64 text of tokenizer.json. Throws RangeError where the sizes do not fit. */
  constructor(base64: string) {
    const bytes = Buffer.from(base64, "base64");
    const trieBytes = bytes.length < 4 ? -1 : bytes.readUInt32LE(0);
    if (trieBytes <= 0 || trieBytes % 4 !== 0 || 4 + trieBytes > bytes.length) {
      throw new RangeError("precompiled_charsmap is damaged: its trie does not fit");
    }
    this.#units = new Int32Array(trieBytes / 4);
    for (let i = 0; i < this.#units.length; i++) this.#units[i] = bytes.readInt32LE(4 + 4 * i);
    this.#pool = bytes.subarray(4 + trieBytes);
  }

  normalize(text: string): string {
    let normalized = "";
    for (const { segment } of graphemes.segment(text)) normalized += this.#grapheme(segment);
    return normalized;
  }

  #grapheme(grapheme: string): string {
    let result = this.#remembered.get(grapheme);
    if (result === undefined) {
      result = this.#mapGrapheme(grapheme);
      if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
      this.#remembered.set(grapheme, result);
    }
    return result;
  }

  #mapGrapheme(grapheme: string): string {
    const bytes = utf8.encode(grapheme);
    const whole = bytes.length <= MAX_CLUSTER_BYTES ? this.#replacement(bytes) : undefined;
    if (whole !== undefined) return whole;
    let result = "";
    for (const character of grapheme) {
      result += this.#replacement(utf8.encode(character)) ?? character;
    }
    return result;
  }

  /** The replacement of the shortest key that the bytes start with. */
  #replacement(bytes: Uint8Array): string | undefined {
    let position = offsetOf(this.#unit(0));
    for (const byte of bytes) {
      if (byte === 0) return undefined;
      position ^= byte;
      const unit = this.#unit(position);
      if ((unit & LABEL_MASK) !== byte) return undefined;
      position ^= offsetOf(unit);
      if (unit & CHILD_HAS_VALUE) return this.#pooled(this.#unit(position) & VALUE_MASK);
    }
    return undefined;
  }

  /** Units outside of the trie have no label that a byte could equal. */
  #unit(position: number): number {
    return this.#units[position] ?? -1;
  }

  #pooled(start: number): string {
    const end = this.#pool.indexOf(0, start);
    return Buffer.from(this.#pool.subarray(start, end < 0 ? undefined : end)).toString("utf8");
  }
}

/** Bit 9 says that the offset counts in steps of 256. */
function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & (1 << 9)) >>> 6);
}
