import { join } from "node:path";
import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { Weights } from "../checkpoint/weights.ts";
import { embedding, normedEmbeddings } from "./embedding.ts";
import { layerNorm } from "./norms.ts";

mx.openDevice("cpu");

const ROWS = 2 ** 13;
const WIDTH = 64;

/** One table that is large enough to stay in its file, and a small one. */
function openTables(): Weights {
  const directory = temporaryDirectory("tables");
  const random = (rows: number, factor: number) =>
    mx.fromFloat32(
      Float32Array.from({ length: rows * WIDTH }, (_, i) => Math.sin(i * factor)),
      [rows, WIDTH],
    );
  const ones = mx.fromFloat32(new Float32Array(WIDTH).fill(1), [WIDTH]);
  const tensors = new Map([
    ["words.weight", random(ROWS, 0.7)],
    ["types.weight", random(2, 1.3)],
    ["norm.weight", ones],
    ["norm.bias", ones],
  ]);
  mx.saveSafetensors(join(directory, "model.safetensors"), tensors, new Map());
  return Weights.open(directory, { prefixes: [], computeDtype: "float32" });
}

test("a table that stays in its file gives the rows of one that is in memory, repeated ones too", () => {
  const weights = openTables();
  const inMemory = weights.take("words.weight");
  const fromFile = embedding(openTables(), "words", ROWS, WIDTH);
  weights.close();
  const indices = Int32Array.of(5, ROWS - 1, 5, 0, 5);
  mx.scope(() => {
    const expected = mx.take(inMemory, mx.fromInt32(indices, [5]), 0).toFloat32();
    expect(fromFile(indices).toFloat32()).toEqual(expected);
    const lookUp = fromFile.lookUp!(indices);
    expect(lookUp.table.shape).toEqual([3, WIDTH]);
  });
});

test("tables in the file and in memory add up", () => {
  const weights = openTables();
  const tables = [embedding(weights, "words", ROWS, WIDTH), embedding(weights, "types", 2, WIDTH)];
  const norm = layerNorm(weights, "norm", WIDTH, 1e-12);
  weights.close();
  const words = Int32Array.of(9, 3, 9);
  mx.scope(() => {
    const sum = mx.add(tables[0]!(words), tables[1]!(Int32Array.of(0, 1, 1)));
    const found = normedEmbeddings(tables, norm)(words, Int32Array.of(0, 1, 1)).toFloat32();
    norm(sum)
      .toFloat32()
      .forEach((value, i) => expect(found[i]!).toBeCloseTo(value, 5));
  });
});
