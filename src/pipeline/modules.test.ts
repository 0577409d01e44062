import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import { readTensors, tensorNamed, writeTensors } from "../../test/checkpoints.ts";
import { copyOfFixture, editJson } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { loadModuleChain, type ModuleChain } from "./modules.ts";

mx.openDevice("cpu");

const OPTIONS = { computeDtype: "float32", hiddenSize: 36, defaultPooling: "mean" } as const;
const WIDTH = 36;

type ModuleList = { type: string; path: string }[];

function editModules(directory: string, change: (modules: ModuleList) => void): void {
  editJson<ModuleList>(join(directory, "modules.json"), change);
}

function chainOf(directory: string): ModuleChain {
  return loadModuleChain(readCheckpoint(directory), OPTIONS);
}

const hidden = () =>
  mx.fromFloat32(
    Float32Array.from({ length: 3 * WIDTH }, (_, i) => Math.sin(i)),
    [3, WIDTH],
  );
const rows = { lengths: Int32Array.of(3), promptTokens: Int32Array.of(0) };

function run(chain: ModuleChain): Float32Array {
  return mx.scope(() => chain.forward(hidden(), rows).toFloat32());
}

function length(vector: Float32Array): number {
  return Math.hypot(...vector);
}

test("Dense modules apply where the chain lists them, with the activation and bias of their file", () => {
  const directory = copyOfFixture("bert-cls-dense");
  const withTanh = run(chainOf(directory));
  expect(withTanh).toHaveLength(40);
  editJson<Record<string, unknown>>(join(directory, "2_Dense/config.json"), (config) => {
    config.activation_function = "torch.nn.modules.linear.Identity";
  });
  const plain = run(chainOf(directory));
  plain.forEach((value, i) => expect(withTanh[i]).toBeCloseTo(Math.tanh(value), 6));

  editJson<Record<string, unknown>>(join(directory, "2_Dense/config.json"), (config) => {
    config.bias = false;
  });
  expect(run(chainOf(directory))).not.toEqual(plain);
});

test("a Dense module with a residual adds its input, projected where the width changes", () => {
  const directory = copyOfFixture("bert-cls-dense");
  const set = (changes: object) =>
    editJson(join(directory, "2_Dense/config.json"), (config: object) =>
      Object.assign(config, changes),
    );
  set({ activation_function: "torch.nn.modules.linear.Identity", bias: false });
  const projected = run(chainOf(directory));
  set({ activation_function: "torch.nn.modules.activation.Tanh", use_residual: true });
  const weights = join(directory, "2_Dense/model.safetensors");
  const table = readTensors(weights);
  writeTensors(weights, table.set("residual.weight", tensorNamed(table, "linear.weight")));
  run(chainOf(directory)).forEach((value, i) =>
    expect(value).toBeCloseTo(Math.tanh(projected[i]!) + projected[i]!, 5),
  );
});

test("a closing Normalize is left to the caller, an earlier one is part of the chain", () => {
  const directory = copyOfFixture("bert-cls-dense");
  expect(chainOf(directory).endsNormalized).toBe(true);
  const unnormalized = run(chainOf(directory));
  expect(length(unnormalized)).not.toBeCloseTo(1, 2);

  editModules(directory, (modules) => {
    const [dense] = modules.splice(2, 1);
    modules.push(dense!);
  });
  const normalizedFirst = chainOf(directory);
  expect(normalizedFirst.endsNormalized).toBe(false);
  expect(run(normalizedFirst)).not.toEqual(unnormalized);

  editModules(directory, (modules) => {
    modules.splice(3, 1);
    modules.push(modules[2]!);
  });
  const twice = chainOf(directory);
  expect(twice.endsNormalized).toBe(true);
  expect(length(run(twice))).toBeCloseTo(1, 6);
});

test("without modules.json: the pooling of 1_Pooling, else the family's, and L2", () => {
  const directory = copyOfFixture("bert-max");
  rmSync(join(directory, "modules.json"));
  expect(chainOf(directory)).toMatchObject({ pooling: { modes: ["max"] }, endsNormalized: true });
  rmSync(join(directory, "1_Pooling"), { recursive: true });
  expect(chainOf(directory)).toMatchObject({ pooling: { modes: ["mean"] }, endsNormalized: true });
});

test("the caller's pooling beats the file's", () => {
  const checkpoint = readCheckpoint(copyOfFixture("bert-max"));
  const chain = loadModuleChain(checkpoint, { ...OPTIONS, pooling: "lasttoken" });
  expect(chain.pooling?.modes).toEqual(["lasttoken"]);
  expect(run(chain)).toEqual(
    mx.scope(() =>
      hidden()
        .toFloat32()
        .slice(2 * WIDTH),
    ),
  );
});

test("several poolings widen the vectors", () => {
  const directory = copyOfFixture("bert-max");
  const pooling = { pooling_mode: ["mean", "max"] };
  writeFileSync(join(directory, "1_Pooling/config.json"), JSON.stringify(pooling));
  expect(chainOf(directory).outputSize).toBe(2 * WIDTH);
});

function expectRefused(directory: string, message: RegExp): void {
  expect(() => chainOf(directory)).toThrow(CheckpointError);
  expect(() => chainOf(directory)).toThrow(message);
}

test("a chain without Pooling, or in another order, is refused", () => {
  const directory = copyOfFixture("bert-cls-dense");
  editModules(directory, (modules) => modules.splice(1, 1));
  expectRefused(directory, /modules\.json: the chain Transformer, Dense, Normalize/);
});

test("a Dense module that does not fit is refused by name", () => {
  const setting = (changes: Record<string, unknown>) => {
    const directory = copyOfFixture("bert-cls-dense");
    editJson(join(directory, "2_Dense/config.json"), (config: object) =>
      Object.assign(config, changes),
    );
    return directory;
  };
  const gelu = "my_package.SpecialGelu";
  expectRefused(setting({ activation_function: gelu }), /activation_function "my_package/);
  expectRefused(setting({ use_residual: true }), /tensor "residual\.weight" is missing/);
  expectRefused(setting({ module_input_name: "token_embeddings" }), /module_input_name: /);
  expectRefused(setting({ in_features: 30 }), /in_features|shape/);
  expectRefused(setting({ bias: true, out_features: 41 }), /\[40, 36\].*\[41, 36\]/);

  const narrower = setting({});
  writeFileSync(join(narrower, "1_Pooling/config.json"), '{"pooling_mode":["cls","mean"]}');
  expectRefused(narrower, /2_Dense\/config\.json: in_features is 36, but 72 come in/);
});
