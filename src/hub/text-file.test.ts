import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { temporaryDirectory } from "../../test/fixtures/fixtures.ts";
import { adapterBase } from "./adapter-base.ts";
import { readText } from "./text-file.ts";

const directory = temporaryDirectory("text-file");

test("a file and a link to it are read, and nothing where nothing is", () => {
  writeFileSync(join(directory, "file"), "text");
  symlinkSync("file", join(directory, "link"));
  expect(readText(join(directory, "file"))).toBe("text");
  expect(readText(join(directory, "link"))).toBe("text");
  expect(readText(join(directory, "none"))).toBeUndefined();
  expect(readText(join(directory, "file", "in a file"))).toBeUndefined();
});

test("what is no file is named instead of being read: a pipe would never end", () => {
  const pipe = join(directory, "adapter_config.json");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  expect(() => readText(pipe)).toThrow(`${pipe} cannot be read (not a file)`);
  expect(() => adapterBase(directory)).toThrow(`${pipe} cannot be read (not a file)`);
  mkdirSync(join(directory, "folder"));
  expect(() => readText(join(directory, "folder"))).toThrow("folder cannot be read (not a file)");
  symlinkSync("loop", join(directory, "loop"));
  expect(() => readText(join(directory, "loop"))).toThrow("loop cannot be read (ELOOP)");
});

test.skipIf(process.getuid?.() === 0)("a file without the right to read it is named", () => {
  const path = join(directory, "secret");
  writeFileSync(path, "");
  chmodSync(path, 0);
  expect(() => readText(path)).toThrow(`${path} cannot be read (EACCES)`);
});
