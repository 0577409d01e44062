// @ts-check
/**
 * What must be on the machine before a set-up can start. Plain JavaScript: the bootstrap asks before Bun is there.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isAtLeast, systemProblem, thisSystem } from "./supported-system.mjs";

/**
 * A command that a set-up needs and cannot use.
 * @typedef {object} Lack
 * @property {string} name
 * @property {string} [says] first line of its own complaint; absent when there is no such command
 * @property {string} debian packages that bring it
 * @property {string} [macos] command that brings it; absent when no Mac needs it
 */

/** @typedef {{ readonly line: string } | { readonly says: string | undefined }} Outcome */

const OLDEST_PYTHON = "3.11";
const vendor = dirname(fileURLToPath(import.meta.url));
const lock = JSON.parse(readFileSync(join(vendor, "native.lock.json"), "utf8"));

const PYTHON = {
  name: "python3",
  debian: "python3 python3-pip python3-venv",
  macos: "xcode-select --install",
};
const PIP = { name: "pip", debian: "python3-pip", macos: "python3 -m ensurepip --upgrade" };
const VENV = { name: "Python's venv", debian: "python3-venv", macos: "brew install python3" };
const CARGO = { name: "cargo", debian: "cargo", macos: "brew install rust" };
const CMAKE = { name: "cmake", debian: "cmake", macos: "brew install cmake" };
const COMPILER = { name: "a C++ compiler", debian: "g++", macos: "xcode-select --install" };
const ARM64_COMPILER = { name: "aarch64-linux-gnu-g++", debian: "g++-aarch64-linux-gnu" };
const QEMU = { name: "qemu-aarch64", debian: "qemu-user" };
const NINJA = { name: "ninja", debian: "ninja-build", macos: "brew install ninja" };

/**
 * Runs a command away from the user's folder, whose files Python would import.
 * @param {string[]} command
 * @returns {Outcome} the first line that it prints, or why there is none
 */
function outcome([program = "", ...args]) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: vendor,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (status === 0) return { line: stdout.split("\n")[0] ?? "" };
  if (error)
    return { says: "code" in error && error.code === "ENOENT" ? undefined : error.message };
  const lines = `${stderr}\n${stdout}`.split("\n").filter((line) => line.trim() !== "");
  // Of a Python traceback only the end tells anything.
  const says = lines[0]?.startsWith("Traceback") ? lines.at(-1) : lines[0];
  return { says: says?.trim() ?? `it ends with exit code ${status}` };
}

/**
 * Nothing when one of the commands runs. Otherwise what the first that is there at all says.
 * @param {Omit<Lack, "says">} requirement
 * @param {string[][]} commands
 * @returns {Lack[]}
 */
function lackOf(requirement, ...commands) {
  /** @type {string | undefined} */
  let says;
  for (const command of commands) {
    const result = outcome(command);
    if ("line" in result) return [];
    says ??= result.says;
  }
  return [says === undefined ? requirement : { ...requirement, says }];
}

/**
 * A Python module that is missing, or does not work.
 * @param {Omit<Lack, "says">} requirement
 * @param {string[]} args
 * @returns {Lack[]}
 */
function lackOfModule(requirement, args) {
  const [lack] = lackOf(requirement, ["python3", ...args]);
  if (lack === undefined) return [];
  return [/No module named/.test(lack.says ?? "") ? requirement : lack];
}

/** @returns {Lack[]} of what fetches wheels */
export function pipLacks() {
  const python = lackOf(PYTHON, ["python3", "--version"]);
  return python.length > 0 ? python : lackOfModule(PIP, ["-m", "pip", "--version"]);
}

/** @returns {Lack[]} of what fetches crates */
export function cargoLacks() {
  return lackOf(CARGO, ["cargo", "--version"]);
}

/** @returns {Lack[]} of what compiles */
export function compilerLacks() {
  const compilers = [process.env["CXX"] || "c++", "g++", "clang++"];
  return withCmake(lackOf(COMPILER, ...compilers.map((name) => [name, "--version"])));
}

/**
 * What lacks of CMake, of the compiler and of CMake's build tool.
 * @param {Lack[]} compiler
 */
function withCmake(compiler) {
  return [
    ...lackOf(CMAKE, ["cmake", "--version"]),
    ...compiler,
    ...lackOf(NINJA, ["ninja", "--version"], ["make", "--version"]),
  ];
}

/** The build tool that CMake shall use, once `compilerLacks` is empty. */
export function cmakeGenerator() {
  return "line" in outcome(["ninja", "--version"]) ? "Ninja" : "Unix Makefiles";
}

/** @returns {Lack[]} of everything that a build of the native set takes */
export function buildLacks() {
  return [...fetchLacks(), ...compilerLacks()];
}

/** @returns {Lack[]} of everything that makes the native set for arm64 on another processor, and runs it */
export function arm64Lacks() {
  const compiler = lackOf(ARM64_COMPILER, [ARM64_COMPILER.name, "--version"]);
  const qemu = lackOf(QEMU, [QEMU.name, "--version"]);
  return [...fetchLacks(), ...withCmake(compiler), ...qemu];
}

/** @returns {Lack[]} of what fetches the parts of a native set */
function fetchLacks() {
  const { file } = lock.mlxC;
  const hasCrate =
    existsSync(join(vendor, "cache/downloads", file)) || crateInCargoHome(file) !== undefined;
  return [...pipLacks(), ...(hasCrate ? [] : cargoLacks())];
}

/** @returns {Lack[]} of what makes the virtual environment of the test clients */
export function venvLacks() {
  const pip = pipLacks();
  if (pip.length > 0) return pip;
  const version = outcome(["python3", "-c", "import platform; print(platform.python_version())"]);
  if ("line" in version && !isAtLeast(version.line, OLDEST_PYTHON)) {
    const name = `Python ${OLDEST_PYTHON} or newer (python3 is ${version.line})`;
    return [{ ...PYTHON, name, macos: "brew install python3" }];
  }
  return lackOfModule(VENV, ["-c", "import ensurepip, venv; print()"]);
}

/** Why the native set cannot run on this machine, in one line; undefined when it can. */
export function platformProblem() {
  return systemProblem(thisSystem(), lock.platforms);
}

/** Why the tests of arm64 code cannot run on this machine, in one line; undefined when they can. */
export function arm64Problem() {
  const name = `${process.platform}-${process.arch}`;
  if (name === "linux-x64") return undefined;
  return `arm64 is emulated on linux-x64 only, this is ${name}; npm test tests the processor that it runs on`;
}

/**
 * Path of a crate's archive that cargo has fetched before.
 * @param {string} file
 */
export function crateInCargoHome(file) {
  const cache = join(process.env["CARGO_HOME"] || join(homedir(), ".cargo"), "registry/cache");
  if (!existsSync(cache)) return undefined;
  return readdirSync(cache)
    .map((registry) => join(cache, registry, file))
    .find((path) => existsSync(path));
}

/**
 * One line about everything that lacks; undefined when nothing does.
 * @param {readonly Lack[]} lacks
 */
export function lackMessage(lacks) {
  const all = [...new Map(lacks.map((lack) => [lack.name, lack])).values()];
  const missing = all.filter(({ says }) => says === undefined);
  const broken = all.filter(({ says }) => says !== undefined);
  const parts = broken.map(({ name, says }) => `${name} is there but does not run: ${says}`);
  if (missing.length > 0) {
    const verb = missing.length === 1 ? "is" : "are";
    parts.unshift(
      `${inWords(missing.map(({ name }) => name))} ${verb} missing; ${install(missing)}`,
    );
  }
  return parts.length > 0 ? parts.join("; ") : undefined;
}

/** @param {readonly Lack[]} missing */
function install(missing) {
  const debian = `apt install ${missing.map((lack) => lack.debian).join(" ")}`;
  const macos = [...new Set(missing.map((lack) => lack.macos))].join(" && ");
  return `install with: ${process.platform === "darwin" ? macos : debian}`;
}

/** @param {readonly string[]} names */
function inWords(names) {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
