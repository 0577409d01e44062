import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lackMessage } from "./requirements.mjs";

const install = process.platform === "darwin" ? "brew install" : "apt install";
const node = Bun.which("node") ?? "node";

/** The only folder on the path. */
let programs: string;
beforeEach(() => {
  programs = mkdtempSync(join(tmpdir(), "mlxcel-programs-"));
});
afterEach(() => rmSync(programs, { recursive: true, force: true }));

function program(name: string, script: string): void {
  const path = join(programs, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

/** What a set-up says about the machine when only `programs` is on its path. */
function message(lacks: string): string {
  const module = join(import.meta.dir, "requirements.mjs");
  const script = `const m = await import("${module}"); console.log(m.lackMessage(m.${lacks}()));`;
  const { stdout, stderr } = Bun.spawnSync([node, "--input-type=module", "-e", script], {
    env: { PATH: programs, CARGO_HOME: programs },
  });
  return stdout.toString().trim() + stderr.toString();
}

test("a command that is there and fails is told apart from a missing one, in its own words", () => {
  expect(message("cargoLacks")).toStartWith(`cargo is missing; install with: ${install}`);
  program("cargo", "echo 'error: no default toolchain' >&2; echo 'help: choose one' >&2; exit 1");
  expect(message("cargoLacks")).toBe(
    "cargo is there but does not run: error: no default toolchain",
  );
  program("cargo", "exit 3");
  expect(message("cargoLacks")).toBe("cargo is there but does not run: it ends with exit code 3");
  program("cargo", "echo cargo 1.80");
  expect(message("cargoLacks")).toBe("undefined");
});

test("everything that a build lacks is named in one line", () => {
  program("cmake", "echo cmake version 3.30");
  program("g++", "echo 'g++: broken' >&2; exit 1");
  const line = message("compilerLacks");
  expect(line).toContain("ninja is missing");
  expect(line).toContain("; a C++ compiler is there but does not run: g++: broken");
  expect(line.split("\n")).toHaveLength(1);
  rmSync(join(programs, "cmake"));
  rmSync(join(programs, "g++"));
  expect(message("compilerLacks")).toContain("cmake, a C++ compiler and ninja are missing");
});

test("one of several compilers and build tools is enough", () => {
  for (const name of ["cmake", "clang++", "make"]) program(name, "echo 1.0");
  expect(message("compilerLacks")).toBe("undefined");
});

test("a python3 without pip lacks pip, a broken pip says why", () => {
  program(
    "python3",
    'test "$1" = --version || { echo "python3: No module named pip" >&2; exit 1; }',
  );
  expect(message("pipLacks")).toStartWith("pip is missing; install with: ");
  const traceback = "Traceback (most recent call last):\\n  File x\\nImportError: no _ssl";
  program("python3", `test "$1" = --version || { printf '${traceback}\\n' >&2; exit 1; }`);
  expect(message("pipLacks")).toBe("pip is there but does not run: ImportError: no _ssl");
});

test.if(process.platform === "linux")(
  "arm64 code takes a compiler for it and qemu, each named with its package",
  () => {
    for (const name of ["python3", "cargo", "cmake", "ninja", "g++"]) program(name, "echo 1.0");
    expect(message("arm64Lacks")).toBe(
      "aarch64-linux-gnu-g++ and qemu-aarch64 are missing; install with: apt install g++-aarch64-linux-gnu qemu-user",
    );
    program("aarch64-linux-gnu-g++", "echo 12.2");
    expect(message("arm64Lacks")).toBe(
      "qemu-aarch64 is missing; install with: apt install qemu-user",
    );
    program("qemu-aarch64", "echo 7.2");
    expect(message("arm64Lacks")).toBe("undefined");
  },
);

test("nothing that lacks twice is named twice", () => {
  const pip = { name: "pip", debian: "python3-pip", macos: "x" };
  expect(lackMessage([pip, pip])).toStartWith("pip is missing");
  expect(lackMessage([])).toBeUndefined();
});
