/** What the tests of the kernels share. */
import { expect } from "bun:test";
import * as mx from "../index.ts";
import { nativeKernels } from "../library.ts";

mx.openDevice("cpu");

export const kernels = mx.kernels();

const best = mx.instructionSet();

function choose(instructionSet: string): boolean {
  return nativeKernels?.mlxcel_use_instruction_set(instructionSet) ?? false;
}

/** Those that this CPU has. */
export const instructionSets = ["avx512", "avx2", "baseline"].filter(
  (name) => kernels && choose(name),
);
if (best) choose(best);

/** Runs `body` with the kernels of one instruction set. */
export function runWith<T>(instructionSet: string, body: (k: mx.Kernels) => T): T {
  choose(instructionSet);
  try {
    return mx.scope(() => body(kernels!));
  } finally {
    choose(best!);
  }
}

/** Runs `body` with weights packed as bf16; not at all where the CPU cannot, or other kernels were chosen. */
export function runInBf16(body: (k: mx.Kernels) => void): void {
  if (!mx.packWeightsAsBf16()) return;
  try {
    mx.scope(() => body(kernels!));
  } finally {
    choose(best!);
  }
}

/** Irregular numbers between -range and range, the same in every run. */
export function numbers(count: number, seed: number, range = 1): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => {
    const wave = Math.sin(seed * 12.9898 + i * 78.233) * 43758.5453;
    return (wave - Math.floor(wave) - 0.5) * 2 * range;
  });
}

export function matrix(rows: number, width: number, seed: number, range = 1): mx.Tensor {
  return mx.fromFloat32(numbers(rows * width, seed, range), [rows, width]);
}

export function vector(values: Float32Array): mx.Tensor {
  return mx.fromFloat32(values, [values.length]);
}

/** The largest difference, relative to the larger of `floor` and the wanted number. */
export function worst(actual: Float32Array, wanted: ArrayLike<number>, floor = 1): number {
  expect(actual.length).toBe(wanted.length);
  let found = 0;
  for (let i = 0; i < actual.length; i++) {
    if (Object.is(actual[i], wanted[i]) || actual[i] === wanted[i]) continue;
    const error = Math.abs(actual[i]! - wanted[i]!) / Math.max(floor, Math.abs(wanted[i]!));
    found = Math.max(found, Number.isNaN(error) ? Infinity : error);
  }
  return found;
}

/** A layer of irregular weights, packed and by mlx's own operations. */
export function layer(k: mx.Kernels, inputs: number, outputs: number, seed: number) {
  const weight = matrix(outputs, inputs, seed);
  const bias = vector(numbers(outputs, seed + 1));
  return {
    packed: { weight: k.pack(weight), bias, outputs },
    plain: (x: mx.Tensor) => mx.addmm(bias, x, mx.transpose(weight)),
  };
}
