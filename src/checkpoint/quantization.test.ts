import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import {
  CheckpointCopy,
  fixture,
  floatTensor,
  type TensorTable,
  tensorNamed,
} from "../../test/checkpoints.ts";
import { refusalOf } from "../../test/refusal.ts";
import { readJson } from "./json-file.ts";
import { readQuantization } from "./quantization.ts";
import { SafetensorsFiles } from "./weight-files.ts";
import { Weights } from "./weights.ts";
import { z } from "zod";

mx.openDevice("cpu");

const NAME = "bert-mean-mlx-4bit";
const LAYER = "encoder.layer.0.attention.self.query";
const WORDS = "embeddings.word_embeddings.weight";
const AFFINE = { group_size: 64, bits: 4, mode: "affine" };

describe("config.json", () => {
  const packingOf = (quantization: object, layer = LAYER) =>
    readQuantization({ quantization })?.packingOf(layer);

  test("says how a layer is packed, for all or for it alone", () => {
    expect(readQuantization({ quantization: null })).toBeUndefined();
    expect(packingOf({ group_size: 32, bits: 3 })).toEqual({
      groupSize: 32,
      bits: 3,
      mode: "affine",
    });
    const layers = { a: false, b: true, c: { bits: 8 }, d: { mode: "mxfp8" } };
    const mixed = { group_size: 16, bits: 4, mode: "nvfp4", ...layers };
    expect(packingOf(mixed, "a")).toBeUndefined();
    expect(packingOf(mixed, "b")).toEqual({ groupSize: 16, bits: 4, mode: "nvfp4" });
    // What the entry of a layer leaves out is mlx's default, not what the others have.
    expect(packingOf(mixed, "c")).toEqual({ groupSize: 64, bits: 8, mode: "affine" });
    expect(packingOf(mixed, "d")).toEqual({ groupSize: 32, bits: 8, mode: "mxfp8" });
  });

  test("quantization beats its copy, which counts alone too", () => {
    const copy = { ...AFFINE, bits: 8 };
    const both = { quantization: AFFINE, quantization_config: copy };
    expect(readQuantization(both)?.packingOf(LAYER)?.bits).toBe(4);
    expect(readQuantization({ quantization_config: copy })?.packingOf(LAYER)?.bits).toBe(8);
  });

  test.each([
    [{ bits: 7 }, /quantization: bits: 7 is not one of 2, 3, 4, 5, 6, 8 \(affine\)/],
    [{ group_size: 48 }, /quantization: group_size: 48 is not one of 32, 64, 128 \(affine\)/],
    [{ mode: "int3" }, /quantization: mode: "int3" is not a known mode \(affine, mxfp4/],
    [{ mode: "nvfp4" }, /quantization: group_size: 64 is not one of 16 \(nvfp4\)/],
    [{ [LAYER]: { bits: 1 } }, /quantization\.encoder\.layer\.0\.attention\.self\.query: bits: 1/],
    [{ [LAYER]: "dense" }, /query: /],
    [{ quantize_input: true }, /quantize_input/],
    [{ quant_method: "gptq" }, /quantization\.quant_method: "gptq" is not supported/],
  ] as const)("%j is refused by name", (changes, message) => {
    expect(refusalOf(() => packingOf({ ...AFFINE, ...changes }))).toMatch(message);
  });
});

describe("tensors that do not fit their packing are refused by name", () => {
  function refusal(change: (table: TensorTable) => void, quantization: unknown = AFFINE): string {
    const copy = new CheckpointCopy(NAME);
    copy.set("config.json", { quantization, quantization_config: undefined }).tensors(change);
    const config = readJson(copy.path("config.json"), z.record(z.string(), z.unknown()));
    return refusalOf(() => new SafetensorsFiles(copy.directory, readQuantization(config)));
  }
  const without = (part: string) => (table: TensorTable) => void table.delete(`${LAYER}.${part}`);
  const unchanged = () => {};

  test.each(["weight", "scales", "biases"])("%s is missing", (part) => {
    expect(refusal(without(part))).toMatch(new RegExp(`"${LAYER}\\.${part}" is missing`));
  });

  test.each([
    [{ bits: 8 }, /weight" .* is U32 \[128, 8\]; config\.json says 8 bits in groups of 64/],
    [{ group_size: 32 }, /says 4 bits in groups of 32 \(affine\), the scales are F32 \[128, 1\]/],
    [{ mode: "mxfp4", group_size: 32 }, /\(mxfp4\)/],
    [{ mode: "mxfp8", group_size: 32, bits: 8 }, /scales" .* is F32 .*\(mxfp8\)/],
  ])("%j, which they are not", (changes, message) => {
    expect(refusal(unchanged, { ...AFFINE, ...changes })).toMatch(message);
  });

  test("a layer that is said to be dense, or a checkpoint without a word on it", () => {
    const dense = { ...AFFINE, [LAYER]: false };
    expect(refusal(unchanged, dense)).toContain(`says that "${LAYER}" is dense`);
    expect(refusal(unchanged, null)).toContain('no "quantization"');
  });

  test("scales of integers, biases of another shape", () => {
    const scales = `${LAYER}.scales`;
    const integers = refusal((table) => {
      table.set(scales, { ...tensorNamed(table, scales), dtype: "I32" });
    });
    expect(integers).toContain(`"${scales}"`);
    const biases = refusal((table) => {
      table.set(`${LAYER}.biases`, floatTensor([64, 2], new Float32Array(128)));
    });
    expect(biases).toContain(`"${LAYER}.biases"`);
  });
});

describe("a quantised matrix", () => {
  const files = () =>
    new SafetensorsFiles(fixture(NAME), readQuantization({ quantization: AFFINE }));
  const open = (keep: boolean) =>
    new Weights(files(), {
      prefixes: [],
      computeDtype: "float32",
      keepQuantized: () => keep,
    });

  test("is one tensor of the shape that it stands for; most bytes give the type its name", () => {
    const { locations, storedDtype } = files();
    expect(storedDtype).toBe("4-bit");
    expect(locations.get(WORDS)).toMatchObject({ shape: [1000, 64], dtype: "4-bit" });
    expect(locations.has("embeddings.word_embeddings.scales")).toBe(false);
  });

  test("is dense to those who take it, rows and whole, and as it is stored to those who ask", () => {
    const [dense, kept] = [open(false), open(true)];
    expect(dense.float32Bytes).toBeGreaterThan(1000 * 64 * 4);
    expect([dense.stayQuantized, kept.stayQuantized]).toEqual([false, true]);
    expect(kept.staysQuantized(WORDS)).toBe(true);
    expect(kept.staysQuantized("embeddings.LayerNorm.weight")).toBe(false);
    const shape = [1000, 64] as const;
    const whole = dense.take(WORDS, shape);
    const rows = kept.takeRows(WORDS, shape, Int32Array.of(7, 0));
    const [asked, stored] = [dense, kept].map((weights) => weights.takeMatrix(WORDS, shape));
    const same = kept.take(WORDS, shape);
    dense.close();
    kept.close();
    expect(asked).toBe(whole);
    if (!stored || stored instanceof mx.Tensor) throw new Error("it did not stay quantised");
    const values = whole.toFloat32();
    expect(mx.dequantize(stored).toFloat32()).toEqual(values);
    expect(same.toFloat32()).toEqual(values);
    expect([...rows.toFloat32()]).toEqual([
      ...values.slice(7 * 64, 8 * 64),
      ...values.slice(0, 64),
    ]);
  });

  test("that was made dense leaves nothing else in memory", () => {
    const before = mx.activeBytes();
    const weights = open(false);
    const whole = weights.take(WORDS, [1000, 64]);
    weights.close();
    expect(mx.activeBytes() - before).toBe(whole.byteLength);
    whole.free();
    expect(mx.activeBytes()).toBe(before);
  });

  test("of another shape than the network's is named", () => {
    expect(refusalOf(() => open(true).takeMatrix(WORDS, [1000, 32]))).toMatch(
      /word_embeddings\.weight" .* has the shape \[1000, 64\], expected is \[1000, 32\]/,
    );
  });
});

test("packed numbers without scales, and 8-bit floats, are no weights", () => {
  const refusal = (dtype: string) => {
    const copy = new CheckpointCopy("bert-mean").tensors((table) => {
      const name = `${LAYER}.bias`;
      const { bytes } = tensorNamed(table, name);
      const shape = dtype.startsWith("F8") ? [256] : [64];
      table.set(name, { dtype, shape, bytes });
    });
    return refusalOf(() =>
      Weights.open(copy.directory, { prefixes: [], computeDtype: "float32" }).take(`${LAYER}.bias`),
    );
  };
  expect(refusal("U32")).toMatch(/query\.bias" .* is of the type U32/);
  expect(refusal("F8_E4M3")).toMatch(/query\.bias" .* is of the type F8_E4M3/);
  expect(refusal("F8_E5M2")).toContain("F8_E5M2");
});
