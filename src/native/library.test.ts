import { afterAll, describe, expect, test } from "bun:test";
import { suffix } from "bun:ffi";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { LibraryError } from "./library-error.ts";
import { findLibrary } from "./library.ts";

const empty = mkdtempSync(join(tmpdir(), "mlxcel-library-"));
afterAll(() => rmSync(empty, { recursive: true }));

describe("the native library", () => {
  test("is taken from MLXCEL_MLXC_PATH, a file or the directory that holds it", () => {
    const path = findLibrary({});
    expect(findLibrary({ MLXCEL_MLXC_PATH: path })).toBe(path);
    expect(findLibrary({ MLXCEL_MLXC_PATH: dirname(path) })).toBe(path);
  });

  test("that is missing is named, with the next step", () => {
    const file = join(empty, `libmlxc.${suffix}`);
    expect(() => findLibrary({ MLXCEL_MLXC_PATH: empty })).toThrow(
      new LibraryError(
        `native library not found at ${file}: correct MLXCEL_MLXC_PATH, or unset it and run npm start once`,
      ),
    );
  });
});
