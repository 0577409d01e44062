import { afterAll, describe, expect, test } from "bun:test";
import { suffix } from "bun:ffi";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fixture } from "../../test/fixtures/fixtures.ts";
import { run } from "../../test/server.ts";
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

test.skipIf(process.platform !== "linux")(
  "a build of ours that lacks a kernel is refused: models would run without any (skipped: no kernels)",
  async () => {
    const path = findLibrary({});
    const folder = join(empty, "stale");
    mkdirSync(folder);
    for (const name of readdirSync(dirname(path))) {
      if (name.includes(".so")) symlinkSync(join(dirname(path), name), join(folder, name));
    }
    const stale = join(folder, basename(path));
    rmSync(stale);
    const library = readFileSync(path).toString("latin1");
    writeFileSync(stale, library.replaceAll("\0mlxcel_rope\0", "\0mlxcel_ropf\0"), "latin1");
    const { exitCode, stderr } = await run(["doctor"], { MLXCEL_MLXC_PATH: stale });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      `${stale} is of another version (it lacks mlxcel_rope): run npm start`,
    );
  },
);

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
