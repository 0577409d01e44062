/** Runs the real program on a reference checkpoint. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixture, temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { mlxcel } from "./testing/mlxcel.ts";

const MODEL = ["-m", fixture("bert-mean")];

test("the copy is told in one line, and embeds", async () => {
  const out = join(temporaryDirectory("quantize"), "small");
  const { stdout, stderr, code } = await mlxcel([
    ...["quantize", ...MODEL, "--bits", "3", "--group", "32", "-o", out],
  ]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(stdout).toMatch(/^\S+: 16 matrices quantised, \d[^,]* -> \d[^,]*\n$/);
  const embedded = await mlxcel(["embed", "-m", out, "-t", "hello", "--json"]);
  expect(embedded.code).toBe(0);
});

test.each([
  [[...MODEL], /give -o DIR/],
  [["-o", "out"], /give -m MODEL/],
  [[...MODEL, "-o", "out", "--bits", "7"], /--bits 7 is not one of 2, 3, 4, 5, 6, 8/],
  [[...MODEL, "-o", "out", "--group", "48"], /--group 48 is not one of 32, 64, 128/],
  [[...MODEL, "-o", "out", "--mode", "nvfp4", "--bits", "8"], /--bits 8 is not one of 4 \(nvfp4\)/],
  [[...MODEL, "-o", "out", "--mode", "int4"], /--mode/],
])("%j is a wrong command line, and makes nothing", async (args, message) => {
  const { stderr, stdout, code } = await mlxcel(["quantize", ...args]);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(stderr).toMatch(message);
  expect({ stdout, code }).toEqual({ stdout: "", code: 2 });
  expect(existsSync("out")).toBe(false);
});

test("what a killed run to the same place has left goes; running ones and other folders stay", async () => {
  const parent = temporaryDirectory("quantize");
  const { pid: ended } = Bun.spawnSync(["true"]);
  const kept = [`small.tmp.${process.pid}`, `other.tmp.${ended}`, "small.tmp.mine"];
  for (const name of [...kept, `small.tmp.${ended}`]) {
    mkdirSync(join(parent, name));
    writeFileSync(join(parent, name, "part"), "");
  }
  const { stderr, code } = await mlxcel(["quantize", ...MODEL, "-o", join(parent, "small")]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(readdirSync(parent).sort()).toEqual([...kept, "small"].sort());
});

test("what cannot be quantised is refused in one line", async () => {
  const { stderr, code } = await mlxcel([
    ...["quantize", "-m", fixture("bert-mean-mlx-4bit"), "-o", "out"],
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^mlxcel: .* is quantised already.*\n$/);
});
