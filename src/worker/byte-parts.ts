/** Strings of bytes, one after the other in one buffer that another thread can be given. */
export interface ByteParts {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** [parts + 1] byte offsets into `bytes`. */
  readonly offsets: Uint32Array<ArrayBuffer>;
}

export function joinParts(parts: readonly Uint8Array[]): ByteParts {
  const offsets = new Uint32Array(parts.length + 1);
  parts.forEach((part, i) => {
    offsets[i + 1] = offsets[i]! + part.byteLength;
  });
  const bytes = new Uint8Array(offsets[parts.length]!);
  parts.forEach((part, i) => bytes.set(part, offsets[i]!));
  return { bytes, offsets };
}

/** The bytes of one part, not copied. */
export function partAt({ bytes, offsets }: ByteParts, index: number): Uint8Array<ArrayBuffer> {
  return bytes.subarray(offsets[index], offsets[index + 1]);
}
