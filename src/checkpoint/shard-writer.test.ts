import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import * as mx from "../../ffi/index.ts";
import { temporaryDirectory } from "../../test/checkpoints.ts";
import { ShardWriter } from "./shard-writer.ts";
import { SafetensorsFiles } from "./weight-files.ts";

mx.openDevice("cpu");

const vector = (value: number, length = 4) =>
  mx.fromFloat32(new Float32Array(length).fill(value), [length]);

function written(maxBytes: number) {
  const directory = temporaryDirectory();
  const writer = new ShardWriter(directory, maxBytes);
  writer.add({ a: vector(1) });
  writer.add({ b: vector(2), c: vector(3) });
  writer.add({ d: vector(4) });
  expect(writer.finish()).toBe(4 * 16);
  return { directory, names: readdirSync(directory).sort() };
}

test("few tensors are one file", () => {
  expect(written(1000).names).toEqual(["model.safetensors"]);
});

test("many are shards with an index, and those that belong together are in one", () => {
  const { directory, names } = written(40);
  expect(names).toEqual([
    "model-00001-of-00003.safetensors",
    "model-00002-of-00003.safetensors",
    "model-00003-of-00003.safetensors",
    "model.safetensors.index.json",
  ]);
  const files = new SafetensorsFiles(directory);
  expect(files.locations.get("b")?.file).toBe(files.locations.get("c")?.file);
  const values = ["a", "b", "c", "d"].map((name) => {
    const tensor = files.tensor(name);
    return tensor instanceof mx.Tensor ? tensor.toFloat32()[0] : undefined;
  });
  expect(values).toEqual([1, 2, 3, 4]);
});
