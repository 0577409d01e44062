/** What holds of the executable as a file. */
import { beforeAll, expect, test } from "bun:test";
import { globSync, readFileSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { cacheFolder, pinnedPlatforms } from "../../vendor/pinned.ts";
import { isAtLeast } from "../../vendor/supported-system.mjs";
import { temporaryDirectory } from "../fixtures/fixtures.ts";
import { build, builtExecutable, EXECUTABLE } from "./user.ts";

const ROOT = resolve(import.meta.dir, "../..");

beforeAll(async () => {
  await builtExecutable();
});

test("the build prints the sizes of the file and of what is inside", async () => {
  const printed = await builtExecutable();
  expect(printed).toMatch(/libmlxc\.so: \d+\.\d MB, \d+\.\d [kM]B inside\n/);
  expect(printed).toMatch(/mlxcel: \d+\.\d MB\n$/);
});

test("the same inputs give the same bytes, whatever the file is called", async () => {
  const again = join(temporaryDirectory("again"), "another-name");
  await build("--target", "linux-x64", "--out", again);
  expect(readFileSync(again).equals(readFileSync(EXECUTABLE))).toBe(true);
});

test("the file holds no path of the machine that built it", () => {
  const content = readFileSync(EXECUTABLE);
  for (const folder of [ROOT, realpathSync(cacheFolder)]) {
    expect(content.includes(folder), folder).toBe(false);
  }
});

test("a target that is not known is refused by name", async () => {
  await expect(build("--target", "windows-x64")).rejects.toThrow("--target takes linux-x64");
});

test("the native set asks for no newer glibc than the program does", () => {
  const libraries = [
    ...globSync(join(ROOT, "vendor/lib/linux-x64/*.so*")),
    ...globSync(join(ROOT, "node_modules/@img/sharp-*linux-x64/lib/*{.node,.so*}")),
  ];
  expect(libraries.length).toBeGreaterThan(6);
  const newest = pinnedPlatforms["linux-x64"]?.glibc ?? "";
  const tooNew = libraries.flatMap((library) => {
    const { stdout } = Bun.spawnSync(["objdump", "-T", library]);
    const versions = [...stdout.toString().matchAll(/\(GLIBC_(\d+\.\d+)/g)];
    expect(versions.length, library).toBeGreaterThan(0);
    return versions
      .filter(([, version = ""]) => !isAtLeast(newest, version))
      .map(([, version]) => `${library}: ${version}`);
  });
  expect(tooNew).toEqual([]);
});
