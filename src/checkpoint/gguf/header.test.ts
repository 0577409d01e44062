import { describe, expect, test } from "bun:test";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../test/fixtures/fixtures.ts";
import {
  ggufBytes,
  ggufFixture,
  partsOf,
  u32,
  u64,
  type GgufParts,
  type GgufTensorBytes,
} from "../../../test/gguf.ts";
import { refusalOf } from "../../../test/refusal.ts";
import { readGgufHeader } from "./header.ts";

const directory = temporaryDirectory("gguf-header");

function file(bytes: Uint8Array | string): string {
  const path = join(directory, "model.gguf");
  writeFileSync(path, bytes);
  return path;
}

function refusal(bytes: Uint8Array | string): string {
  const path = file(bytes);
  const message = refusalOf(() => readGgufHeader(path));
  expect(message).toStartWith(path);
  return message;
}

const KEYS = new Map([["general.architecture", "bert"]]);
const ONE = { type: 0, shape: [1], bytes: u32(0) };

const made = (parts: Partial<GgufParts>) => ggufBytes({ metadata: KEYS, ...parts });

test("shapes are row-major, places count from the start of the file", () => {
  const { tensors, metadata } = readGgufHeader(ggufFixture("bert-mean-gguf-q8_0"));
  expect(metadata.count("bert.context_length")).toBe(96);
  expect(metadata.texts("tokenizer.ggml.tokens")).toHaveLength(1000);
  expect(tensors.get("blk.0.ffn_up.weight")).toMatchObject({
    type: { name: "Q8_0" },
    shape: [128, 64],
    begin: 141_408,
    end: 141_408 + ((128 * 64) / 32) * 34,
  });
});

test("a copy that was written from its parts reads the same", () => {
  const path = file(ggufBytes(partsOf("qwen3-embed-gguf-f16")));
  const copy = readGgufHeader(path);
  const original = readGgufHeader(ggufFixture("qwen3-embed-gguf-f16"));
  expect([...copy.tensors.keys()]).toEqual([...original.tensors.keys()]);
  expect(copy.metadata.texts("tokenizer.ggml.merges")).toEqual(
    original.metadata.texts("tokenizer.ggml.merges"),
  );
});

test("every length of a file that was cut short is refused", () => {
  const whole = made({ tensors: new Map([["a.weight", { ...ONE, bytes: new Uint8Array(4) }]]) });
  const end = whole.length - 28; // behind the only value
  expect(readGgufHeader(file(whole.subarray(0, end))).tensors.size).toBe(1);
  for (let length = 0; length < end; length++) {
    expect(refusal(whole.subarray(0, length))).toMatch(
      /is not a GGUF file|damaged or incomplete|GGUF version 0/,
    );
  }
});

test("a file that is cut while it is read is refused", () => {
  const path = file(readFileSync(ggufFixture("bert-mean-gguf-q8_0")));
  truncateSync(path, 100_000);
  expect(() => readGgufHeader(path)).toThrow(/tensor "\S+" ends at byte \d+, the file at 100000/);
});

describe("refused by name:", () => {
  const big = (value: number) => u32(value).reverse();
  test.each([
    ["nothing", "", "is not a GGUF file"],
    ["another format", "safetensors are not this", "is not a GGUF file"],
    ["a Git LFS pointer", "version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"],
    ["version 1", made({ version: 1 }), "has the GGUF version 1, supported are 2 and 3"],
    ["version 4", made({ version: 4 }), "has the GGUF version 4"],
    ["big endian", Buffer.concat([Buffer.from("GGUF"), big(3), u64(0)]), "big-endian"],
    ["parts", made({ metadata: new Map([["split.count", 3]]) }), "one of 3 parts"],
    ["an alignment", made({ metadata: new Map([["general.alignment", 12]]) }), "general.alignment"],
    ["no alignment", made({ metadata: new Map([["general.alignment", 0]]) }), "general.alignment"],
    ["too many tensors", made({ tensorCount: 2 ** 52 }), "claims 4503599627370496 tensors"],
    ["too many keys", made({ keyCount: 2 ** 52 }), "claims 4503599627370496 metadata keys"],
    [
      "an IQ type",
      made({ tensors: new Map([["a", { ...ONE, type: 23 }]]) }),
      'tensor "a" is of the type IQ4_XS',
    ],
    ["a type of tomorrow", made({ tensors: new Map([["a", { ...ONE, type: 99 }]]) }), "number 99"],
    [
      "rows that are no blocks",
      made({ tensors: new Map([["a", { ...ONE, type: 8, shape: [2, 33] }]]) }),
      'tensor "a" of Q8_0 has the shape [2, 33]',
    ],
    [
      "a shape beyond all numbers",
      made({ tensors: new Map([["a", { ...ONE, shape: [2 ** 40, 2 ** 40] }]]) }),
      'tensor "a" of F32 has the shape',
    ],
    [
      "no values",
      made({ tensors: new Map([["a", { ...ONE, shape: [0] }]]) }),
      'tensor "a" of F32 has the shape [0]',
    ],
    [
      "five axes",
      made({ tensors: new Map([["a", { ...ONE, shape: [1, 1, 1, 1, 1] }]]) }),
      'tensor "a" has 5 axes',
    ],
    [
      "a tensor beyond the end",
      made({ tensors: new Map([["a", { ...ONE, offset: 2 ** 40 }]]) }),
      'tensor "a" ends at byte',
    ],
    [
      "a tensor off the alignment",
      made({ tensors: new Map([["a", { ...ONE, offset: 4 }]]) }),
      'tensor "a" starts at 4, no multiple of 32',
    ],
    [
      "tensors that overlap",
      made({
        tensors: new Map<string, GgufTensorBytes>([
          ["a", ONE],
          ["b", { ...ONE, offset: 0 }],
        ]),
      }),
      'tensor "b" overlaps',
    ],
    [
      "a list longer than the file",
      made({
        metadata: new Map([["k", { type: 9, bytes: Buffer.concat([u32(4), u64(2 ** 50)]) }]]),
      }),
      'numbers of "k"',
    ],
    [
      "texts without end",
      made({
        metadata: new Map([["k", { type: 9, bytes: Buffer.concat([u32(8), u64(2 ** 50)]) }]]),
      }),
      'texts of "k"',
    ],
    [
      "lists within lists",
      made({
        metadata: new Map([["k", { type: 9, bytes: Buffer.concat([u32(9), u64(1)]) }]]),
      }),
      'metadata key "k" has lists within a list',
    ],
    [
      "an unknown type of value",
      made({ metadata: new Map([["k", { type: 77, bytes: u32(0) }]]) }),
      'metadata key "k" has the unknown type 77',
    ],
  ] as const)("%s", (_, bytes, message) => {
    expect(refusal(bytes)).toContain(message);
  });
});

test("keys and tensors that occur twice are refused", () => {
  const twice = (bytes: Uint8Array) =>
    Buffer.from(Buffer.from(bytes).toString("latin1").replaceAll("other", "first"), "latin1");
  const metadata = new Map([
    ["first", 1],
    ["other", 1],
  ]);
  expect(refusal(twice(ggufBytes({ metadata })))).toContain('metadata key "first" occurs twice');
  const tensors = new Map([
    ["first", ONE],
    ["other", ONE],
  ]);
  expect(refusal(twice(made({ tensors })))).toContain('tensor "first" occurs twice');
});

test("texts are read as they are, byte order marks included", () => {
  const tokens = ["\ufeff", "\ufeffa", "", "é", "\0"];
  const { metadata } = readGgufHeader(file(ggufBytes({ metadata: new Map([["k", tokens]]) })));
  expect(metadata.texts("k")).toEqual(tokens);
});

test("the header is learnt without the rest of the file", () => {
  const path = file(readFileSync(ggufFixture("bert-mean-gguf-f32")));
  truncateSync(path, 1e12); // a hole: read as a whole, it would fill any memory
  expect(readGgufHeader(path).tensors.size).toBe(37);
});
