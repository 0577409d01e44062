import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "bun:test";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { CheckpointError } from "./error.ts";
import { readSafetensorsHeader } from "./safetensors-header.ts";

const directory = mkdtempSync(join(tmpdir(), "mlxcel-header-"));
afterAll(() => rmSync(directory, { recursive: true }));
const path = join(directory, "model.safetensors");
const whole = readFileSync(fixture("bert-cls-dense/2_Dense/model.safetensors"));

/** The message of the refusal, or undefined where the bytes pass. Anything but a CheckpointError fails the test. */
function refusalOf(bytes: Uint8Array): string | undefined {
  writeFileSync(path, bytes);
  try {
    readSafetensorsHeader(path);
    return undefined;
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    expect(error.message).toContain(path);
    expect(error.message).not.toContain("\n");
    return error.message;
  }
}

function fileOf(header: unknown, tensorBytes: number): Uint8Array {
  const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, Buffer.alloc(tensorBytes)]);
}

test("names, types, shapes and places of the tensors are read", () => {
  writeFileSync(path, whole);
  const tensors = readSafetensorsHeader(path);
  expect([...tensors.keys()].sort()).toEqual(["linear.bias", "linear.weight"]);
  expect(tensors.get("linear.weight")).toMatchObject({ dtype: "F32", shape: [40, 36] });
});

test("a file cut anywhere is refused", () => {
  for (let length = 0; length < whole.length; length++) {
    expect(refusalOf(whole.subarray(0, length))).toBeDefined();
  }
  expect(refusalOf(whole)).toBeUndefined();
});

test("a file with bytes behind its last tensor is refused", () => {
  expect(refusalOf(Buffer.concat([whole, Buffer.alloc(1)]))).toContain("the file has 5921");
});

test("no changed byte of the header is worse than a refusal", () => {
  const headerEnd = 8 + Number(whole.readBigUInt64LE(0));
  for (let at = 0; at < headerEnd; at++) {
    for (const value of [0x00, 0x22, 0x39, 0x7d, 0xff]) {
      const changed = Buffer.from(whole);
      changed[at] = value;
      refusalOf(changed);
    }
  }
});

test("a header length beyond the file or beyond reason is refused without reading it", () => {
  for (const claim of [BigInt(whole.length), 99_999_999n, 1n << 40n, (1n << 64n) - 1n]) {
    const changed = Buffer.from(whole);
    changed.writeBigUInt64LE(claim);
    expect(refusalOf(changed)).toMatch(/ends within its header|header claims/);
  }
});

test("tensors that overlap, leave gaps or do not fit their shape are refused by name", () => {
  const two = (first: number[], second: number[]) => ({
    a: { dtype: "F32", shape: [2], data_offsets: first },
    b: { dtype: "F32", shape: [2], data_offsets: second },
  });
  expect(refusalOf(fileOf(two([0, 8], [8, 16]), 16))).toBeUndefined();
  expect(refusalOf(fileOf(two([0, 8], [4, 12]), 12))).toContain('tensor "b"');
  expect(refusalOf(fileOf(two([0, 8], [12, 20]), 20))).toContain('tensor "b"');
  expect(refusalOf(fileOf(two([0, 8], [8, 12]), 12))).toContain('tensor "b"');
  expect(refusalOf(fileOf(two([8, 0], [0, 8]), 8))).toContain('tensor "a"');
  expect(
    refusalOf(fileOf({ a: { dtype: "F32", shape: [2 ** 40, 2 ** 40], data_offsets: [0, 8] } }, 8)),
  ).toContain('tensor "a"');
});

test("an element type that is not known is refused by name", () => {
  const header = { a: { dtype: "F4", shape: [2], data_offsets: [0, 1] } };
  expect(refusalOf(fileOf(header, 1))).toContain("F4");
});

test("a header that is no object of tensors is refused", () => {
  for (const header of ["", "[]", "null", "{", '{"a": 1}', '{"a": {"dtype": "F32"}}']) {
    expect(refusalOf(fileOf(header, 0))).toBeDefined();
  }
  expect(refusalOf(fileOf({ __metadata__: { format: "pt" } }, 0))).toBeUndefined();
});

test("a Git LFS pointer is recognised", () => {
  const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  expect(refusalOf(Buffer.from(pointer))).toContain("Git LFS pointer");
});
