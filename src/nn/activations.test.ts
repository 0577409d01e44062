import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { activation } from "./activations.ts";

mx.openDevice("cpu");

const X = Float32Array.of(-3, -1, -0.5, 0, 0.5, 1, 3);

function apply(name: string): number[] {
  return mx.scope(() => [
    ...activation(name, "hidden_act")(mx.fromFloat32(X, [X.length])).toFloat32(),
  ]);
}

/** The defining formulas evaluated in f64. */
const WANTED: Record<string, readonly number[]> = {
  gelu: [-0.00404969, -0.15865525, -0.15426877, 0, 0.34573123, 0.84134475, 2.99595031],
  gelu_new: [-0.00363739, -0.15880801, -0.15428599, 0, 0.34571401, 0.84119199, 2.99636261],
  silu: [-0.14227762, -0.26894142, -0.18877033, 0, 0.31122967, 0.73105858, 2.85772238],
  relu: [0, 0, 0, 0, 0.5, 1, 3],
  identity: [-3, -1, -0.5, 0, 0.5, 1, 3],
};

test.each(Object.entries(WANTED))("%s", (name, wanted) => {
  apply(name).forEach((value, i) => expect(value).toBeCloseTo(wanted[i]!, 6));
});

test("names that mean the same give the same", () => {
  expect(apply("gelu_pytorch_tanh")).toEqual(apply("gelu_new"));
  expect(apply("swish")).toEqual(apply("silu"));
});

test("an unknown name stops the load, naming the setting and the known names", () => {
  const find = () => activation("quick_gelu", "config.json: hidden_act");
  expect(find).toThrow(CheckpointError);
  expect(find).toThrow(/config\.json: hidden_act.*"quick_gelu".*gelu_new/);
});
