import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  nativeSetKey,
  pinnedDemoModel,
  pinnedMlxC,
  pinnedPlatforms,
  vendorFolder,
} from "./pinned.ts";

let copy: string;
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), "mlxcel-vendor-"));
  cpSync(vendorFolder, copy, {
    recursive: true,
    filter: (path) => !["lib", "cache"].includes(basename(path)),
  });
});
afterEach(() => rmSync(copy, { recursive: true, force: true }));

test("the key of the native set does not depend on where the repository lies", () => {
  expect(nativeSetKey(copy)).toBe(nativeSetKey());
});

test.each(["native.lock.json", "build.ts", "native/blas_bridge.c", "native/CMakeLists.txt"])(
  "a change of %s asks for a new native set",
  (name) => {
    appendFileSync(join(copy, name), "\n");
    expect(nativeSetKey(copy)).not.toBe(nativeSetKey());
  },
);

test("a new native source asks for a new native set", () => {
  writeFileSync(join(copy, "native/kernel.cpp"), "");
  expect(nativeSetKey(copy)).not.toBe(nativeSetKey());
});

test("every pinned file has a full SHA-256", () => {
  const platforms = Object.values(pinnedPlatforms);
  const wheels = platforms.flatMap(({ mlx, openblas }) => [mlx, ...(openblas ? [openblas] : [])]);
  const hashes = [pinnedMlxC, pinnedDemoModel.wheel, ...wheels].map(({ sha256 }) => sha256);
  expect(hashes).toHaveLength(7);
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(new Set(hashes).size).toBe(7);
});
