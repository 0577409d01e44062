import { expect, test } from "bun:test";
import { npyFile } from "./npy.ts";

test("the header is version 1.0, ends in a line feed and is padded to 64 bytes, for any shape", () => {
  for (const [rows, columns] of [
    [1, 1],
    [3, 64],
    [1234, 7],
    [10_000, 1024],
  ] as const) {
    const file = npyFile(new Float32Array(0), rows, columns);
    const headerBytes = new DataView(file.buffer, file.byteOffset).getUint16(8, true);
    expect([...file.subarray(0, 8)]).toEqual([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]);
    expect((10 + headerBytes) % 64).toBe(0);
    expect(file.length).toBe(10 + headerBytes);
    const header = new TextDecoder().decode(file.subarray(10));
    expect(header).toMatch(
      /^\{'descr': '<f4', 'fortran_order': False, 'shape': \(\d+, \d+\), \} *\n$/,
    );
    expect(header).toContain(`(${rows}, ${columns})`);
  }
});

test("values follow as little-endian f32, also those of a view", () => {
  const values = Float32Array.of(9, 1, -2.5, 0.125, 0).subarray(1, 4);
  const file = npyFile(values, 1, 3);
  expect(Buffer.from(file.subarray(-12)).toString("hex")).toBe("0000803f000020c00000003e");
});
