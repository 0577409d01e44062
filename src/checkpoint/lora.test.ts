import { describe, expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointCopy, fixture, floatTensor, type TensorTable } from "../../test/checkpoints.ts";
import { refusalOf } from "../../test/refusal.ts";
import { AdaptedFiles } from "./adapted-files.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { LoraAdapter } from "./lora.ts";
import { readLoraConfig } from "./lora-config.ts";
import { readQuantization } from "./quantization.ts";
import { SafetensorsFiles } from "./weight-files.ts";

mx.openDevice("cpu");

const NAME = "bert-lora-patterns";
const FILE = "adapter_model.safetensors";
const QUERY = "encoder.layer.0.attention.self.query";
const OF_QUERY = `base_model.model.${QUERY}`;

function adapted(directory: string, base = fixture("bert-mean")): AdaptedFiles {
  return new AdaptedFiles(new SafetensorsFiles(base), new LoraAdapter(directory), "float32");
}

function valuesOf(files: AdaptedFiles, name: string): Float32Array {
  const tensor = files.tensor(name);
  if (!(tensor instanceof mx.Tensor)) throw new Error(`${name} is quantised`);
  return tensor.toFloat32();
}

describe("adapter_config.json", () => {
  test("alpha is divided by the rank or its root, and patterns beat it for the layers they end", () => {
    const scale = (changes: Record<string, unknown>, layer = "a.query") => {
      const copy = new CheckpointCopy(NAME).set("adapter_config.json", changes);
      return readLoraConfig(copy.directory).scale(layer, 4);
    };
    expect(scale({ lora_alpha: 6 })).toBe(1.5);
    expect(scale({ lora_alpha: 6, use_rslora: true })).toBe(3);
    const alpha_pattern = { "layer.1.query": 2, query: 4 };
    expect(scale({ alpha_pattern }, "encoder.layer.1.query")).toBe(0.5);
    expect(scale({ alpha_pattern }, "encoder.layer.2.query")).toBe(1);
    expect(scale({ alpha_pattern, lora_alpha: 6 }, "encoder.subquery")).toBe(1.5);
  });

  test.each([
    [{ peft_type: "IA3" }, /peft_type: /],
    [{ init_lora_weights: "pissa" }, /init_lora_weights: /],
    [{ fan_in_fan_out: true }, /"fan_in_fan_out" is not supported; merge the adapter/],
    [{ lora_bias: true }, /"lora_bias"/],
    [{ layer_replication: [[0, 4]] }, /"layer_replication"/],
    [{ trainable_token_indices: [7] }, /"trainable_token_indices"/],
    [{ use_something_new: { strength: 2 } }, /"use_something_new"/],
    [{ lora_alpha: null }, /lora_alpha: /],
  ] as const)("%j is refused by name", (changes, message) => {
    const { directory } = new CheckpointCopy(NAME).set("adapter_config.json", changes);
    expect(refusalOf(() => readLoraConfig(directory))).toMatch(message);
  });

  test("settings that are off change nothing", () => {
    const off = { use_something_new: false, another: null, settings: {}, tokens: [], name: "" };
    const { directory } = new CheckpointCopy(NAME).set("adapter_config.json", off);
    expect(readLoraConfig(directory).usesDora).toBe(false);
  });
});

describe("an adapter whose tensors do not fit is refused by name", () => {
  const refusal = (change: (table: TensorTable) => void, name = NAME) => {
    const { directory } = new CheckpointCopy(name).tensors(change, FILE);
    return refusalOf(() => valuesOf(adapted(directory), `${QUERY}.weight`));
  };
  const zeros = (...shape: number[]) =>
    floatTensor(shape, new Float32Array(shape.reduce((a, b) => a * b)));

  test("half of a layer is missing", () => {
    const message = refusal((table) => void table.delete(`${OF_QUERY}.lora_B.weight`));
    expect(message).toContain(`the adapter of "${QUERY}" is incomplete`);
    const magnitude = `${OF_QUERY.replace("query", "key")}.lora_magnitude_vector`;
    expect(refusal((table) => void table.delete(magnitude), "bert-lora-dora")).toContain(
      "is incomplete",
    );
  });

  test("another shape, a layer that the base lacks, an unknown kind", () => {
    expect(refusal((table) => table.set(`${OF_QUERY}.lora_A.weight`, zeros(4, 32)))).toContain(
      `the adapter of "${QUERY}" is for a matrix of [64, 32], the base has [64, 64]`,
    );
    const elsewhere = (table: TensorTable) => {
      for (const part of ["A", "B"]) {
        table.set(`base_model.model.pooling.dense.lora_${part}.weight`, zeros(4, 4));
      }
    };
    expect(refusal(elsewhere)).toContain('adapts "pooling.dense.weight", which the base');
    const bias = `${OF_QUERY}.lora_B.bias`;
    expect(refusal((table) => table.set(bias, zeros(64)))).toContain(`"${bias}" is not supported`);
    const magnitude = `${OF_QUERY}.lora_magnitude_vector`;
    expect(refusal((table) => table.set(magnitude, zeros(64)))).toContain(magnitude);
  });
});

test("tensors saved whole take the place of the base's, under any of peft's wrappers", () => {
  const values = Float32Array.from({ length: 64 }, (_, i) => i);
  const bias = floatTensor([64], values);
  const { directory } = new CheckpointCopy(NAME).tensors((table) => {
    table.set(`${OF_QUERY}.base_layer.bias`, bias);
    table.set("base_model.model.embeddings.LayerNorm.modules_to_save.default.bias", bias);
    table.set("base_model.model.classifier.bias", bias);
  }, FILE);
  const files = adapted(directory);
  for (const name of [`${QUERY}.bias`, "embeddings.LayerNorm.bias", "classifier.bias"]) {
    expect(files.locations.get(name)?.shape).toEqual([64]);
    expect(valuesOf(files, name)).toEqual(values);
  }
  expect(files.tableFile("embeddings.word_embeddings.weight")).toBeUndefined();
});

test("the base may be quantised, and may name its tensors with a prefix", () => {
  const packing = { group_size: 64, bits: 4, mode: "affine" };
  const quantized = new SafetensorsFiles(
    fixture("bert-mean-mlx-4bit"),
    readQuantization({ quantization: packing }),
  );
  const adapter = new LoraAdapter(fixture(NAME));
  const name = `${QUERY}.weight`;
  const stored = quantized.tensor(name);
  if (stored instanceof mx.Tensor) throw new Error("the base is dense");
  const wanted = adapter.adapt(QUERY, mx.dequantize(stored)).toFloat32();
  const files = new AdaptedFiles(quantized, adapter, "float32");
  expect(files.locations.get(name)?.packing).toBeUndefined();
  expect(valuesOf(files, name)).toEqual(wanted);

  const prefixed = new CheckpointCopy("bert-mean").tensors(
    (table) => new Map([...table].map(([key, tensor]) => [`bert.${key}`, tensor])),
  );
  const plain = valuesOf(adapted(fixture(NAME)), name);
  expect(valuesOf(adapted(fixture(NAME), prefixed.directory), `bert.${name}`)).toEqual(plain);
});

describe("the checkpoint of an adapter", () => {
  const base = fixture("bert-mean");

  test("has the files that sentence-transformers saved with it, config.json and weights of the base", () => {
    const { directory } = new CheckpointCopy(NAME).set("sentence_bert_config.json", {
      max_seq_length: 40,
    });
    const checkpoint = readCheckpoint(directory, base);
    expect(checkpoint).toMatchObject({
      ...{ directory, transformerDirectory: directory, adapter: directory },
      ...{ weightsDirectory: base, modelType: "bert", limits: { sentenceMaxLength: 40 } },
    });
  });

  test("that is nothing else is the base's", () => {
    const { directory } = new CheckpointCopy(NAME).remove("modules.json");
    expect(readCheckpoint(directory, base)).toEqual({
      ...readCheckpoint(base),
      adapter: directory,
    });
  });

  test("cannot be read without a base, nor on that of another adapter or of a network without head", () => {
    expect(refusalOf(() => readCheckpoint(fixture(NAME)))).toContain("base model is not at hand");
    expect(refusalOf(() => readCheckpoint(fixture(NAME), fixture("bert-lora-dora")))).toContain(
      "base model is not at hand",
    );
    const classifier = new CheckpointCopy(NAME).set("adapter_config.json", {
      task_type: "SEQ_CLS",
    });
    expect(refusalOf(() => readCheckpoint(classifier.directory, base))).toContain("no classifier");
  });
});
