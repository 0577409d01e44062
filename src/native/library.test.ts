import { afterAll, describe, expect, test } from "bun:test";
import { suffix } from "bun:ffi";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { LibraryError } from "./library-error.ts";
import { findLibrary } from "./library.ts";

const MAIN = join(import.meta.dir, "../main.ts");
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

describe("on a system that is too old, before a native file is opened", () => {
  const oldSystem = join(empty, "old-system.ts");
  writeFileSync(
    oldSystem,
    'process.report.getReport = () => ({ header: { glibcVersionRuntime: "2.31" } });',
  );

  test.skipIf(process.platform !== "linux").each([["doctor"], ["embed"], ["serve"]])(
    "%s says so in one line and ends with exit code 1 (skipped: there is no glibc)",
    async (command) => {
      const args = command === "doctor" ? [] : ["-m", fixture("bert-mean")];
      const text = command === "embed" ? ["-t", "a"] : [];
      const child = Bun.spawn(
        [process.execPath, "--preload", oldSystem, MAIN, command, ...args, ...text],
        { env: { PATH: process.env["PATH"], HOME: empty }, stdout: "pipe", stderr: "pipe" },
      );
      const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
      expect({ stdout, exitCode: await child.exited }).toEqual({ stdout: "", exitCode: 1 });
      expect(stderr).toMatch(
        /^mlxcel( doctor)?: glibc 2\.35 or newer is needed, this system has 2\.31; .*\n$/,
      );
    },
  );
});
