import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as mx from "./index.ts";

const directory = mkdtempSync(join(tmpdir(), "mlxcel-safetensors-"));
const whole = join(directory, "whole.safetensors");
const values = new Float32Array([0, 1, -2.5, 0.15625, 1024, -65504]);
// bfloat16 keeps 8 bits of the mantissa: 65504 rounds to 65536
const bfloat16Values = new Float32Array([0, 1, -2.5, 0.15625, 1024, -65536]);

beforeAll(() => {
  mx.scope(() => {
    const f32 = mx.fromFloat32(values, [2, 3]);
    mx.saveSafetensors(
      whole,
      new Map([
        ["f32", f32],
        ["f16", mx.astype(f32, "float16")],
        ["bf16", mx.astype(f32, "bfloat16")],
        ["transposed", mx.transpose(f32)],
        ["ids", mx.fromInt32(new Int32Array([7, -8]), [2])],
      ]),
      new Map([["format", "pt"]]),
    );
  });
});

afterAll(() => rmSync(directory, { recursive: true }));

function damaged(name: string, bytes: Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

describe("a safetensors file", () => {
  test("gives back names, types, shapes, elements and metadata", () => {
    mx.scope(() => {
      const { tensors, metadata } = mx.loadSafetensors(whole);
      expect(metadata).toEqual(new Map([["format", "pt"]]));
      const described = [...tensors].map(([name, { dtype, shape }]) => ({ name, dtype, shape }));
      expect(described.sort((a, b) => a.name.localeCompare(b.name))).toEqual([
        { name: "bf16", dtype: "bfloat16", shape: [2, 3] },
        { name: "f16", dtype: "float16", shape: [2, 3] },
        { name: "f32", dtype: "float32", shape: [2, 3] },
        { name: "ids", dtype: "int32", shape: [2] },
        { name: "transposed", dtype: "float32", shape: [3, 2] },
      ]);
      expect(tensors.get("f32")!.toFloat32()).toEqual(values);
      expect(tensors.get("f16")!.toFloat32()).toEqual(values);
      expect(tensors.get("bf16")!.toFloat32()).toEqual(bfloat16Values);
      expect(mx.transpose(tensors.get("transposed")!).toFloat32()).toEqual(values);
      expect(tensors.get("ids")!.toInt32()).toEqual(new Int32Array([7, -8]));
    });
  });

  test("without metadata, as mlx itself writes it, has none", () => {
    const path = join(directory, "bare.safetensors");
    mx.scope(() => {
      mx.saveSafetensors(path, new Map([["x", mx.zeros([1])]]));
      expect(mx.loadSafetensors(path).metadata).toEqual(new Map());
    });
  });

  test("that is missing, damaged or cut short is refused by name", () => {
    const bytes = new Uint8Array(readFileSync(whole));
    const longHeader = bytes.slice();
    longHeader[6] = 0x7f;
    const badJson = bytes.slice();
    badJson[8] = 0x5d;
    for (const path of [
      join(directory, "missing.safetensors"),
      damaged("cut.safetensors", bytes.subarray(0, bytes.length - 1)),
      damaged("cut-header.safetensors", bytes.subarray(0, 40)),
      damaged("empty.safetensors", new Uint8Array(0)),
      damaged("long-header.safetensors", longHeader),
      damaged("bad-json.safetensors", badJson),
    ]) {
      expect(() => mx.loadSafetensors(path)).toThrow(`loadSafetensors: ${path}: `);
    }
  });
});
