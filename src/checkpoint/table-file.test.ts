import {
  appendFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import * as mx from "../../ffi/index.ts";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { CheckpointError } from "./error.ts";
import { TableFile } from "./table-file.ts";

mx.openDevice("cpu");

const VALUES = Float32Array.from({ length: 3000 * 5 }, (_, i) => i / 7);
const WIDTH = 5;
const BEGIN = 12;

function tableIn(path: string): TableFile {
  const bytes = new Uint8Array(BEGIN + VALUES.byteLength);
  bytes.set(new Uint8Array(VALUES.buffer), BEGIN);
  writeFileSync(path, bytes);
  return new TableFile({ path, begin: BEGIN, width: WIDTH });
}

function lastRow(table: TableFile): number[] {
  return mx.scope(() => [...table.take(Int32Array.of(2999)).toFloat32()]);
}

test("rows come in the order asked for, each as often as asked for", () => {
  const table = tableIn(join(temporaryDirectory("table"), "table"));
  const rows = mx.scope(() => {
    const found = table.take(Int32Array.of(2999, 0, 2999));
    expect(found.shape).toEqual([3, WIDTH]);
    return [...found.toFloat32()];
  });
  const [first, last] = [VALUES.slice(0, WIDTH), VALUES.slice(-WIDTH)];
  expect(rows).toEqual([...last, ...first, ...last]);
});

const later = new Date(Date.now() + 60_000);

test.each<[string, (path: string) => void]>([
  ["cut short", (path) => truncateSync(path, 100)],
  ["longer", (path) => appendFileSync(path, "more")],
  // what a writer leaves who keeps the length
  ["of another time", (path) => utimesSync(path, later, later)],
])("a file that has become %s gives an error that says so, never other numbers", (_, change) => {
  const path = join(temporaryDirectory("table"), "table");
  const table = tableIn(path);
  expect(lastRow(table)).toEqual([...VALUES.slice(-WIDTH)]);
  change(path);
  expect(() => lastRow(table)).toThrow(CheckpointError);
  expect(() => lastRow(table)).toThrow(`${path} was written to while it is in use; restart mlxcel`);
});

test.each<[string, (path: string) => void]>([
  ["deleted", (path) => rmSync(path)],
  [
    "replaced",
    (path) => {
      writeFileSync(`${path}.new`, "another model");
      renameSync(`${path}.new`, path);
    },
  ],
])(
  "the numbers of a file that was %s are still those of the model that was loaded",
  (_, change) => {
    const path = join(temporaryDirectory("table"), "table");
    const table = tableIn(path);
    change(path);
    expect(lastRow(table)).toEqual([...VALUES.slice(-WIDTH)]);
  },
);
