import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import {
  copyOfFixture,
  editJson,
  fixture,
  temporaryDirectory,
} from "../../test/fixtures/fixtures.ts";
import { readTensors, tensorNamed, writeTensors } from "../../test/checkpoints.ts";
import { refusalOf } from "../../test/refusal.ts";
import { TableFile } from "./table-file.ts";
import { Weights, type WeightsOptions } from "./weights.ts";

const BERT: WeightsOptions = { prefixes: ["bert."], computeDtype: "float32" };
const QUERY = "encoder.layer.1.attention.self.query.weight";

function valuesOf(directory: string, name: string, options = BERT): Float32Array<ArrayBuffer> {
  const weights = Weights.open(directory, options);
  const tensor = weights.take(name);
  weights.close();
  const values = tensor.toFloat32();
  tensor.free();
  return values;
}

function directoryWith(tensors: Readonly<Record<string, mx.Tensor>>): string {
  const directory = temporaryDirectory("weights");
  mx.saveSafetensors(
    join(directory, "model.safetensors"),
    new Map(Object.entries(tensors)),
    new Map([["format", "mlx"]]),
  );
  return directory;
}

function denseTable(weights: Weights, name: string, shape: readonly [number, number]): mx.Tensor {
  const table = weights.takeTable(name, shape);
  if (!(table instanceof mx.Tensor)) throw new Error(`${name} is quantised`);
  return table;
}

test("shards and prefixed names give the values of the plain file", () => {
  const plain = valuesOf(fixture("bert-cls"), QUERY);
  expect(plain.some((value) => value !== 0)).toBe(true);
  expect(valuesOf(fixture("bert-sharded"), QUERY)).toEqual(plain);
  expect(valuesOf(fixture("bert-prefixed"), QUERY)).toEqual(plain);
});

test("a tensor outside of the prefix keeps its name", () => {
  const weights = Weights.open(fixture("bert-prefixed"), BERT);
  expect(weights.has("cls.predictions.bias")).toBe(true);
  expect(weights.has("embeddings.word_embeddings.weight")).toBe(true);
  expect(weights.has("no.such.tensor")).toBe(false);
  weights.close();
});

test("16-bit floats are widened for f32 computation, or kept on request", () => {
  for (const [name, stored, dtype] of [
    ["bert-f16", "F16", "float16"],
    ["bert-bf16", "BF16", "bfloat16"],
  ] as const) {
    const wide = Weights.open(fixture(name), BERT);
    const kept = Weights.open(fixture(name), { ...BERT, computeDtype: "stored" });
    const [a, b] = [wide.take(QUERY), kept.take(QUERY)];
    wide.close();
    kept.close();
    expect(wide.storedDtype).toBe(stored);
    expect(a.dtype).toBe("float32");
    expect(b.dtype).toBe(dtype);
    expect(a.toFloat32()).toEqual(b.toFloat32());
    a.free();
    b.free();
  }
});

test("integers in the place of weights are refused by name and type", () => {
  const prefixed = Weights.open(fixture("bert-prefixed"), BERT);
  expect(refusalOf(() => prefixed.take("embeddings.position_ids"))).toMatch(
    /"bert\.embeddings\.position_ids" .* is of the type I64, expected are floating-point/,
  );
  prefixed.close();
  const directory = directoryWith({ norm: mx.fromUint32(Uint32Array.of(1, 2), [2]) });
  for (const computeDtype of ["float32", "stored"] as const) {
    const weights = Weights.open(directory, { prefixes: [], computeDtype });
    expect(refusalOf(() => weights.takeOptional("norm", [2]))).toContain('"norm"');
    weights.close();
  }
});

test("a missing tensor is named; an optional one is undefined", () => {
  const weights = Weights.open(fixture("bert-mean"), BERT);
  expect(refusalOf(() => weights.take("encoder.layer.9.output.dense.bias"))).toContain(
    '"encoder.layer.9.output.dense.bias"',
  );
  expect(weights.takeOptional("encoder.layer.9.output.dense.bias")).toBeUndefined();
  weights.close();
});

test("another shape names the tensor, what was expected and what was found", () => {
  const weights = Weights.open(fixture("bert-mean"), BERT);
  const message = refusalOf(() => weights.take("embeddings.LayerNorm.weight", [65]));
  expect(message).toContain("embeddings.LayerNorm.weight");
  expect(message).toContain("[64]");
  expect(message).toContain("[65]");
  weights.take("embeddings.LayerNorm.weight", [64]).free();
});

test("LayerNorm is found under its old names", () => {
  const directory = directoryWith({
    "bert.norm.gamma": mx.fromFloat32(Float32Array.of(1, 2), [2]),
    "bert.norm.beta": mx.fromFloat32(Float32Array.of(3, 4), [2]),
  });
  expect([...valuesOf(directory, "norm.weight")]).toEqual([1, 2]);
  expect([...valuesOf(directory, "norm.bias")]).toEqual([3, 4]);
});

test("what nobody took costs no memory, what was taken stays", () => {
  const before = mx.activeBytes();
  const weights = Weights.open(fixture("bert-f16"), BERT);
  const query = weights.take(QUERY);
  weights.close();
  expect(query.toFloat32()).toHaveLength(36 * 36);
  expect(mx.activeBytes() - before).toBeLessThan(36 * 36 * 4 + 4096);
  query.free();
  expect(mx.activeBytes()).toBe(before);
});

test("a tensor outlives the scope it was taken in", () => {
  const weights = Weights.open(fixture("bert-f16"), BERT);
  mx.scope(() => {
    weights.take(QUERY);
  });
  const again = weights.take(QUERY);
  weights.close();
  expect(again.toFloat32()).toEqual(valuesOf(fixture("bert-f16"), QUERY));
  again.free();
});

test("a shard that is not there is named", () => {
  const directory = copyOfFixture("bert-sharded");
  rmSync(join(directory, "model-00002-of-00002.safetensors"));
  expect(refusalOf(() => Weights.open(directory, BERT))).toContain(
    "model-00002-of-00002.safetensors is missing",
  );
});

test("an index that places a tensor in the wrong shard is refused", () => {
  const directory = copyOfFixture("bert-sharded");
  editJson<{ weight_map: Record<string, string> }>(
    join(directory, "model.safetensors.index.json"),
    ({ weight_map }) => {
      weight_map["embeddings.LayerNorm.bias"] = "model-00002-of-00002.safetensors";
    },
  );
  expect(refusalOf(() => Weights.open(directory, BERT))).toContain("embeddings.LayerNorm.bias");
});

test("an index cannot point out of the directory", () => {
  const directory = copyOfFixture("bert-sharded");
  editJson<{ weight_map: Record<string, string> }>(
    join(directory, "model.safetensors.index.json"),
    ({ weight_map }) => {
      weight_map["embeddings.LayerNorm.bias"] = "../model.safetensors";
    },
  );
  expect(refusalOf(() => Weights.open(directory, BERT))).toContain("../model.safetensors");
});

test("an index beside a complete file must list that file and no other", () => {
  const directory = copyOfFixture("bert-cls");
  const index = join(directory, "model.safetensors.index.json");
  cpSync(fixture("bert-sharded/model.safetensors.index.json"), index);
  expect(refusalOf(() => Weights.open(directory, BERT))).toContain(`${index} lists other files`);
  editJson<{ weight_map: Record<string, string> }>(index, ({ weight_map }) => {
    for (const name of Object.keys(weight_map)) weight_map[name] = "model.safetensors";
  });
  expect(valuesOf(directory, QUERY)).toEqual(valuesOf(fixture("bert-cls"), QUERY));
});

test("a shard that no index lists is refused, beside a complete file too", () => {
  const shard = "model-00002-of-00002.safetensors";
  for (const name of ["bert-cls", "bert-sharded"]) {
    const directory = copyOfFixture(name);
    const stray = join(directory, "model-00003-of-00003.safetensors");
    cpSync(fixture(`bert-sharded/${shard}`), stray);
    expect(refusalOf(() => Weights.open(directory, BERT))).toContain(`${stray} is in no`);
  }
  const directory = copyOfFixture("bert-sharded");
  rmSync(join(directory, "model.safetensors.index.json"));
  expect(refusalOf(() => Weights.open(directory, BERT))).toContain("is in no model.safetensors");
});

test("a tensor that two shards hold, or that the index leaves out, is named", () => {
  const directory = copyOfFixture("bert-sharded");
  const [first, second] = [1, 2].map((n) => `model-0000${n}-of-00002.safetensors`);
  const bias = "embeddings.LayerNorm.bias";
  const tensors = readTensors(join(directory, second!));
  tensors.set(bias, tensorNamed(readTensors(join(directory, first!)), bias));
  writeTensors(join(directory, second!), tensors);
  const refusal = () => refusalOf(() => Weights.open(directory, BERT));
  expect(refusal()).toMatch(
    new RegExp(`${second} holds tensor "${bias}", .* places in ${first}, which holds it too`),
  );
  tensors.set("surplus", tensorNamed(tensors, bias));
  tensors.delete(bias);
  writeTensors(join(directory, second!), tensors);
  expect(refusal()).toMatch(/holds tensor "surplus", which .* does not list/);
});

test("what is no file in the place of one is named", () => {
  const directory = copyOfFixture("bert-mean");
  const file = join(directory, "model.safetensors");
  rmSync(file);
  mkdirSync(file);
  expect(refusalOf(() => Weights.open(directory, BERT))).toContain(`${file} is a directory`);
});

test("a directory with only a pickle file is refused with the next step", () => {
  expect(refusalOf(() => Weights.open(fixture("bert-pytorch-bin"), BERT))).toMatch(
    /pytorch_model\.bin .*convert it to model\.safetensors/,
  );
  expect(refusalOf(() => Weights.open(temporaryDirectory("empty"), BERT))).toContain(
    "model.safetensors is missing",
  );
});

test("a file cut within its tensors is refused before anything is computed", () => {
  const directory = copyOfFixture("bert-mean");
  const file = join(directory, "model.safetensors");
  const bytes = readFileSync(file);
  for (const part of [0.1, 0.5, 0.9, 0.999]) {
    writeFileSync(file, bytes);
    truncateSync(file, Math.floor(bytes.length * part));
    expect(refusalOf(() => Weights.open(directory, BERT))).toContain(file);
  }
});

test("a derived tensor is what was made of its sources, and takes their place in memory", () => {
  const bias = "encoder.layer.1.attention.self.query.bias";
  const [matrix, vector] = [QUERY, bias].map((name) => valuesOf(fixture("bert-cls"), name));
  const before = mx.activeBytes();
  const weights = Weights.open(fixture("bert-cls"), BERT);
  const width = vector!.length;
  const twice = weights.derive([QUERY, QUERY], [width, width], (sources) =>
    mx.concatenate(sources, 0),
  );
  const kept = weights.take(bias, [width]);
  const same = weights.derive([bias], [width], ([source]) => source!);
  weights.close();
  expect(mx.activeBytes() - before).toBeLessThan(2.5 * matrix!.byteLength);
  expect([...twice.toFloat32()]).toEqual([...matrix!, ...matrix!]);
  expect(kept.toFloat32()).toEqual(vector!);
  expect(same.toFloat32()).toEqual(vector!);
  for (const tensor of [twice, kept, same]) tensor.free();
  expect(mx.activeBytes()).toBe(before);
});

test("a source that is missing or of another shape is named", () => {
  const weights = Weights.open(fixture("bert-cls"), BERT);
  const derive = (name: string) => weights.derive([name], [3, 3], ([source]) => source!);
  expect(refusalOf(() => derive("no.such.tensor"))).toContain("no.such.tensor");
  expect(refusalOf(() => derive(QUERY))).toContain("expected is [3, 3]");
  weights.close();
});

test("a large table of f32 numbers stays in its file, any other is read; the values are the same", () => {
  const rows = 2 ** 15;
  const values = Float32Array.from({ length: rows * 512 }, (_, i) => i % 4099);
  const table = mx.fromFloat32(values, [rows, 512]);
  const small = mx.fromFloat32(values.slice(0, 512), [1, 512]);
  const directory = directoryWith({ table, small, half: mx.astype(table, "float16") });
  table.free();
  mx.clearCache();
  const weights = Weights.open(directory, { prefixes: [], computeDtype: "float32" });
  const before = mx.activeBytes();
  const inFile = weights.takeTable("table", [rows, 512]);
  const read = denseTable(weights, "half", [rows, 512]);
  expect(denseTable(weights, "small", [1, 512]).toFloat32()).toEqual(values.slice(0, 512));
  weights.close();
  expect(mx.activeBytes() - before).toBe(values.byteLength + 512 * 4);
  const last = rows - 1;
  if (!(inFile instanceof TableFile)) throw new Error("the table was read");
  const rowOfFile = values.slice(-512);
  const found = inFile.take(Int32Array.of(0, last, last));
  expect(found.toFloat32()).toEqual(
    Float32Array.of(...values.slice(0, 512), ...rowOfFile, ...rowOfFile),
  );
  expect(read.dtype).toBe("float32");
  const half = mx.take(read, mx.fromInt32(Int32Array.of(last), [1]), 0).toFloat32();
  expect([...half]).toEqual([...rowOfFile].map(Math.f16round));
  for (const tensor of [read, found]) tensor.free();
});

test("a table behind a header of odd length is read", () => {
  const path = join(
    directoryWith({ table: mx.fromFloat32(Float32Array.of(1, 2), [1, 2]) }),
    "model.safetensors",
  );
  const bytes = readFileSync(path);
  const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length + 1));
  const odd = Buffer.concat([length, header, Buffer.from(" "), bytes.subarray(8 + header.length)]);
  writeFileSync(path, odd);
  const weights = Weights.open(join(path, ".."), { prefixes: [], computeDtype: "float32" });
  const table = denseTable(weights, "table", [1, 2]);
  weights.close();
  expect([...table.toFloat32()]).toEqual([1, 2]);
});
