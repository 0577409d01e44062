import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { Glob } from "bun";

const ROOT = resolve(import.meta.dir, "..");

/** From the outside in: a file may import from its own layer and from those after it. */
const LAYERS = [
  "main",
  "cli",
  "http",
  "dialects",
  "serving",
  "worker",
  "models",
  "pipeline",
  "nn",
  "tokenizer",
  "checkpoint",
  "media",
  "hub",
  "entries",
  "native",
];

/** Layers that touch arrays. Everyone else sees numbers. */
const USES_FFI = new Set(["worker", "models", "pipeline", "nn", "checkpoint"]);

/** `mlxcel doctor` reports on the native library itself. */
const FFI_EXCEPTIONS = new Set(["src/cli/doctor.ts", "src/cli/matmul-rate.ts"]);

function sources(): string[] {
  return [...new Glob("src/**/*.ts").scanSync({ cwd: ROOT })].filter(
    (f) => !f.endsWith(".test.ts"),
  );
}

function layerOf(file: string): string {
  return (file.split("/")[1] ?? "").replace(/\.ts$/, "");
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map((match) =>
    relative(ROOT, resolve(ROOT, dirname(file), match[1]!)),
  );
}

test("an import only points to its own layer or to one below it", () => {
  const upward: string[] = [];
  for (const file of sources()) {
    const from = LAYERS.indexOf(layerOf(file));
    expect(from, `${file} is in no known layer`).toBeGreaterThanOrEqual(0);
    for (const target of importsOf(file).filter((path) => path.startsWith("src/"))) {
      if (LAYERS.indexOf(layerOf(target)) < from) upward.push(`${file} -> ${target}`);
    }
  }
  expect(upward).toEqual([]);
});

test("only the layers that compute import ffi, and only through its index", () => {
  const wrong: string[] = [];
  for (const file of sources()) {
    for (const target of importsOf(file).filter((path) => path.startsWith("ffi/"))) {
      const allowed = USES_FFI.has(layerOf(file)) || FFI_EXCEPTIONS.has(file);
      if (!allowed || target !== "ffi/index.ts") wrong.push(`${file} -> ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("ffi imports only native from src", () => {
  const wrong: string[] = [];
  for (const file of [...new Glob("ffi/**/*.ts").scanSync({ cwd: ROOT })]) {
    for (const target of importsOf(file).filter((path) => path.startsWith("src/"))) {
      if (layerOf(target) !== "native") wrong.push(`${file} -> ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("only src/entries.ts says where the modules of workers are, so that build.ts bundles them all", () => {
  const elsewhere = sources().filter(
    (file) =>
      file !== "src/entries.ts" &&
      /new URL\([^)]*import\.meta\.url/.test(readFileSync(join(ROOT, file), "utf8")),
  );
  expect(elsewhere).toEqual([]);
});
