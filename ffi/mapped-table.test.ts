import { afterAll, expect, test } from "bun:test";
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as mx from "./index.ts";

const directory = mkdtempSync(join(tmpdir(), "mlxcel-table-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function fileOf(name: string, values: Float32Array, skippedBytes: number): string {
  const path = join(directory, name);
  const bytes = new Uint8Array(skippedBytes + values.byteLength);
  bytes.set(new Uint8Array(values.buffer), skippedBytes);
  writeFileSync(path, bytes);
  return path;
}

function mapped(table: mx.TableInFile): mx.Tensor {
  const tensor = mx.mapTable(table);
  if (!tensor) throw new Error("the library maps no tables");
  return tensor;
}

test("a table in a file has the values of the file, wherever it begins", () => {
  const values = Float32Array.from({ length: 3000 * 5 }, (_, i) => i / 7);
  for (const begin of [8, 100, 4096, 4100]) {
    const table = mapped({
      path: fileOf(`begins-${begin}`, values, begin),
      begin,
      rows: 3000,
      width: 5,
    });
    expect(table.shape).toEqual([3000, 5]);
    expect(table.toFloat32()).toEqual(values);
    const rows = mx.take(table, mx.fromInt32(Int32Array.of(2999, 0), [2]), 0);
    expect([...rows.toFloat32()]).toEqual([...values.slice(-5), ...values.slice(0, 5)]);
    table.free();
  }
});

test("what is computed from a table never changes its file", () => {
  const path = fileOf("kept", Float32Array.of(1, 2, 3, 4), 8);
  const doubled = mx.scope(() => {
    const table = mapped({ path, begin: 8, rows: 2, width: 2 });
    return mx.multiply(table, mx.scalar(2));
  });
  expect([...doubled.toFloat32()]).toEqual([2, 4, 6, 8]);
  const again = mapped({ path, begin: 8, rows: 2, width: 2 });
  expect([...again.toFloat32()]).toEqual([1, 2, 3, 4]);
});

test("rows that nobody reads take no memory", async () => {
  const rows = 2 ** 16;
  const path = join(directory, "large");
  const file = openSync(path, "w");
  ftruncateSync(file, 8 + rows * 1024 * 4);
  closeSync(file);
  const before = process.memoryUsage.rss();
  const table = mapped({ path, begin: 8, rows, width: 1024 });
  mx.take(table, mx.fromInt32(Int32Array.of(7, rows - 1), [2]), 0).toFloat32();
  const grown = process.memoryUsage.rss() - before;
  expect(grown).toBeLessThan((rows * 1024 * 4) / 4);
  table.free();
});

test("a missing file and one that ends early are named", () => {
  const missing = join(directory, "missing");
  const table = { begin: 8, rows: 2, width: 3 };
  expect(() => mapped({ ...table, path: missing })).toThrow(`${missing} cannot be opened`);
  const short = fileOf("short", new Float32Array(5), 8);
  expect(() => mapped({ ...table, path: short })).toThrow(`${short} ends before its tensors do`);
});
