import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Packing } from "../../ffi/index.ts";
import {
  CheckpointCopy,
  fixture,
  readTensors,
  referenceCase,
  temporaryDirectory,
  tensorNamed,
} from "../../test/checkpoints.ts";
import { refusalOf } from "../../test/refusal.ts";
import { readJson } from "../checkpoint/json-file.ts";
import { loadEmbeddingModel } from "./load-embedder.ts";
import { loadReranker } from "./load-reranker.ts";
import type { CpuDequantize } from "./open-weights.ts";
import { quantizeCheckpoint } from "./quantize.ts";

const device = mx.openDevice("cpu");
const FOUR_BITS: Packing = { groupSize: 64, bits: 4, mode: "affine" };
const canMount = process.platform === "linux" && process.getuid?.() === 0;
const NVFP4: Packing = { groupSize: 16, bits: 4, mode: "nvfp4" };

function quantized(source: string, packing = FOUR_BITS) {
  const target = join(temporaryDirectory(), "quantised");
  const progress: number[] = [];
  const onProgress = (done: number, total: number) => void progress.push(done / total);
  const report = quantizeCheckpoint({ source, target, packing, onProgress });
  expect(progress.at(-1)).toBe(1);
  return { ...report, target };
}

function vectorOf(directory: string, text: string, cpuDequantize?: CpuDequantize): Float32Array {
  const model = loadEmbeddingModel({ directory, device, cpuDequantize });
  const raw = model.start([model.tokenize({ text }, {})]).read();
  return Float32Array.from(model.finish(raw, {}));
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0);
}

test("the tensors are bit for bit those that MLX itself makes", () => {
  const { target, ...report } = quantized(fixture("bert-mean"));
  const [own, wanted] = [target, fixture("bert-mean-mlx-4bit")].map((directory) =>
    readTensors(join(directory, "model.safetensors")),
  );
  expect(report).toMatchObject({ quantized: 16, leftDense: [] });
  expect(report.bytesAfter).toBeLessThan(report.bytesBefore / 4);
  expect([...own!.keys()].sort()).toEqual([...wanted!.keys()].sort());
  for (const [name, { dtype, shape, bytes }] of wanted!) {
    const tensor = tensorNamed(own!, name);
    expect(tensor, name).toMatchObject({ dtype, shape });
    expect(Buffer.compare(tensor.bytes, bytes), name).toBe(0);
  }
});

test("config.json says how, beside all that it said; tokenizer and modules come along", () => {
  const source = fixture("bert-mean");
  const { target } = quantized(source);
  const settings = { group_size: 64, bits: 4, mode: "affine" };
  const anything = z.record(z.string(), z.unknown());
  expect(readJson(join(target, "config.json"), anything)).toEqual({
    ...readJson(join(source, "config.json"), anything),
    ...{ quantization: settings, quantization_config: settings },
  });
  expect(readdirSync(target).sort()).toEqual(readdirSync(source).sort());
  expect(existsSync(join(target, "1_Pooling", "config.json"))).toBe(true);
});

describe.each([
  { mode: "affine", groupSize: 32, bits: 8 },
  { mode: "affine", groupSize: 32, bits: 6 },
  { mode: "mxfp8", groupSize: 32, bits: 8 },
] as const)("$bits bits ($mode)", (packing) => {
  test("load back and give nearly the vector of the original", () => {
    const { target } = quantized(fixture("qwen3-embed"), packing);
    const { input, embedding } = referenceCase("qwen3-embed", "medium");
    const similarity = cosine(vectorOf(target, String(input)), embedding);
    expect(similarity).toBeGreaterThan(0.995);
    expect(similarity).toBeLessThan(0.9999999);
  });
});

test("modules with weights of their own, and matrices that the group does not divide, stay dense", () => {
  const name = "bert-cls-dense";
  const { target, leftDense, quantized: count } = quantized(fixture(name), NVFP4);
  // 36 wide, but for the second layer of each MLP
  expect(count).toBe(2);
  expect(leftDense).toContain("embeddings.word_embeddings");
  expect(readTensors(join(target, "2_Dense", "model.safetensors")).size).toBe(2);
  const { input, embedding } = referenceCase(name, "medium");
  expect(cosine(vectorOf(target, String(input)), embedding)).toBeGreaterThan(0.9);
});

/** One of each network whose widths sixteen divides. */
const NETWORKS = [
  ...["bert-mean", "nomic-bert", "nomic-bert-hf", "gte-new", "gte-hf", "jina-v3-base"],
  ...["eurobert-mean", "qwen3-embed", "qwen2-embed", "mistral-embed", "ministral3-embed"],
  ...["llama-bidirec", "gemma3-embed", "embedding-gemma2-text"],
];

test.each(NETWORKS)("%s: quantised matrices give the same vector kept and made dense", (name) => {
  const { target, quantized: count } = quantized(fixture(name), NVFP4);
  expect(count).toBeGreaterThan(5);
  const { input, embedding } = referenceCase(name, "medium");
  const [dense, kept] = (["on", "off"] as const).map((cpuDequantize) =>
    vectorOf(target, String(input), cpuDequantize),
  );
  const largest = Math.max(...dense!.map(Math.abs));
  dense!.forEach((value, i) => expect(Math.abs(kept![i]! - value)).toBeLessThan(1e-5 * largest));
  expect(cosine(dense!, embedding)).toBeLessThan(0.9999);
  expect(cosine(dense!, embedding)).toBeGreaterThan(0.5);
});

test("a head of one row stays dense, and config.json says so", () => {
  const { target, leftDense } = quantized(fixture("rerank-gte-new"), NVFP4);
  expect(leftDense).toContain("classifier");
  const { quantization } = readJson(
    join(target, "config.json"),
    z.looseObject({ quantization: z.record(z.string(), z.unknown()) }),
  );
  expect(quantization["classifier"]).toBe(false);
  expect(loadReranker({ directory: target, device }).facts.storedDtype).toBe("nvfp4");
});

test("a copy that is dense for the most part is not said to be quantised as a whole", () => {
  const { target } = quantized(fixture("rerank-bert"), NVFP4);
  const { facts } = loadReranker({ directory: target, device, cpuDequantize: "off" });
  const { storedDtype, loadNotes } = facts;
  expect(storedDtype).toBe("F32");
  expect(loadNotes).toEqual([expect.stringMatching(/^some weights stay quantised/)]);
});

describe("refused by name, and nothing is left behind", () => {
  const refusal = (source: string, target: string) =>
    refusalOf(() =>
      quantizeCheckpoint({ source, target, packing: FOUR_BITS, onProgress: () => {} }),
    );

  test.each([
    ["bert-mean-mlx-4bit", /is quantised already/],
    ["bert-cls", /no matrix .* has a width that groups of 64 divide/],
    ["bert-pytorch-bin", /is a pickle file/],
    ["bert-lora-dora", /is a LoRA adapter; merge it/],
    ["bert-mean-gguf-f32/model.gguf", /is a GGUF file; quantise the original model/],
  ] as const)("%s", (name, message) => {
    const directory = temporaryDirectory();
    expect(refusal(fixture(name), join(directory, "out"))).toMatch(message);
    expect(readdirSync(directory)).toEqual([]);
  });

  test("a target that nothing can be written to", () => {
    const file = join(fixture("bert-cls"), "config.json");
    const target = join(file, "below a file");
    expect(refusal(fixture("bert-mean"), target)).toContain(`${target} cannot be written: ENOTDIR`);
  });

  // needs root on Linux: a small disk is mounted
  test.skipIf(!canMount)("a full disk, wherever in the work it fills up", () => {
    for (const kilobytes of [20, 60, 100, 110]) {
      const disk = temporaryDirectory();
      const mount = ["mount", "-t", "tmpfs", "-o", `size=${kilobytes}k`, "tmpfs", disk];
      expect(Bun.spawnSync(mount).exitCode).toBe(0);
      try {
        const target = join(disk, "quantised");
        expect(refusal(fixture("bert-mean"), target)).toMatch(
          /cannot be written: .*free some space, or name another place with -o/,
        );
        expect(readdirSync(disk)).toEqual([]);
      } finally {
        Bun.spawnSync(["umount", disk]);
      }
    }
  });

  test("a target that exists", () => {
    const { directory } = new CheckpointCopy("bert-mean");
    const before = readdirSync(directory);
    expect(refusal(fixture("bert-mean"), directory)).toContain(`${directory} exists`);
    expect(readdirSync(directory)).toEqual(before);
  });
});
