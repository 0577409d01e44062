/** Magic, version 1.0, and the length field of the header: what stands before the header's text. */
const PREFIX_BYTES = 10;
const ALIGNMENT_BYTES = 64;

/**
 * NumPy's .npy format, version 1.0: little-endian f32 in row-major order.
 * Source: numpy.lib.format, "NumPy Array Format".
 *
 * @param values [rows, columns]
 */
export function npyFile(values: Float32Array, rows: number, columns: number): Uint8Array {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${columns}), }`;
  const used = PREFIX_BYTES + text.length + 1;
  const header = `${text.padEnd(text.length + (-used & (ALIGNMENT_BYTES - 1)))}\n`;
  const start = PREFIX_BYTES + header.length;
  const file = Buffer.alloc(start + values.length * 4);
  file.write("\x93NUMPY\x01\x00", 0, "latin1");
  file.writeUInt16LE(header.length, 8);
  file.write(header, PREFIX_BYTES, "latin1");
  // every platform with MLX is little-endian
  file.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), start);
  return file;
}
