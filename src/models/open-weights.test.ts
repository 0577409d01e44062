import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { readCheckpoint } from "../checkpoint/checkpoint.ts";
import { type CpuDequantize, leavesRoom, openWeights } from "./open-weights.ts";
import { familyOf } from "./registry.ts";

mx.openDevice("cpu");

test("weights in f32 may take three quarters of the free memory", () => {
  expect(leavesRoom(75, 100)).toBe(true);
  expect(leavesRoom(76, 100)).toBe(false);
  expect(leavesRoom(0, 0)).toBe(true);
});

test("quantised weights stay so on a GPU and where the CPU is told so; small ones do not by themselves", () => {
  const checkpoint = readCheckpoint(fixture("bert-mean-mlx-4bit"));
  const stayQuantized = (device: "cpu" | "gpu", cpuDequantize?: CpuDequantize) => {
    const { weights, facts } = openWeights(checkpoint, familyOf(checkpoint), {
      device,
      cpuDequantize,
    });
    expect(facts.loadNotes).toHaveLength(device === "cpu" ? 1 : 0);
    weights.close();
    return weights.stayQuantized;
  };
  expect(stayQuantized("cpu")).toBe(false);
  expect(stayQuantized("cpu", "on")).toBe(false);
  expect(stayQuantized("cpu", "off")).toBe(true);
  expect(stayQuantized("gpu")).toBe(true);
  expect(stayQuantized("gpu", "on")).toBe(true);
});
