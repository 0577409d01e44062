import { describe, expect, test } from "bun:test";
import { pinnedPlatforms } from "./pinned.ts";
import { isAtLeast, systemProblem, thisSystem } from "./supported-system.mjs";

const mac = {
  platform: "darwin",
  arch: "arm64",
  release: "23.6.0",
  glibc: undefined,
  processor: "Apple M2",
};
const linux = { ...mac, platform: "linux", arch: "x64", release: "6.1.0", processor: "AMD EPYC" };

test("the machine that runs the tests is supported", () => {
  expect(systemProblem(thisSystem(), pinnedPlatforms)).toBeUndefined();
});

describe("the native set runs on", () => {
  test.each([
    mac,
    { ...mac, release: "24.1.0" },
    { ...mac, release: "25.0.0" },
    { ...linux, glibc: "2.35" },
    { ...linux, glibc: "2.41", arch: "arm64" },
  ])("$platform $arch, kernel $release, glibc $glibc", (system) => {
    expect(systemProblem(system, pinnedPlatforms)).toBeUndefined();
  });
});

describe("one line says what is needed on", () => {
  test.each([
    ["macOS 13", { ...mac, release: "22.6.0" }, "macOS 14.0 or newer is needed; this is macOS 13"],
    [
      "an Intel Mac",
      { ...mac, arch: "x64", processor: "Intel(R) Core(TM) i7" },
      "a Mac with Apple silicon is needed; this one has an Intel processor",
    ],
    [
      "Rosetta",
      { ...mac, arch: "x64", processor: "VirtualApple @ 2.50GHz" },
      "this process is translated by Rosetta; start it as an arm64 program",
    ],
    [
      "an old glibc",
      { ...linux, glibc: "2.31" },
      "glibc 2.35 or newer is needed, this system has 2.31",
    ],
    ["musl", { ...linux, glibc: undefined }, "this system has another C library"],
    ["another system", { ...linux, platform: "freebsd" }, "there is no native set for freebsd-x64"],
  ])("%s", (_, system, line) => {
    expect(systemProblem(system, pinnedPlatforms)).toContain(line);
    expect(systemProblem(system, pinnedPlatforms)).not.toContain("\n");
  });
});

describe("versions", () => {
  test.each([
    ["2.36", "2.35", true],
    ["2.35", "2.35", true],
    ["2.4", "2.35", false],
    ["15.1.1", "14.0", true],
    ["13.7", "14.0", false],
    ["3", "2.35", true],
    ["3.13.0rc1", "3.11", true],
  ])("%s is at least %s: %p", (version, least, expected) => {
    expect(isAtLeast(version, least)).toBe(expected);
  });
});
