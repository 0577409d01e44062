import { release } from "node:os";
import { type PinnedPlatform, pinnedPlatforms, platformName } from "./pinned.ts";
import { SetupError } from "./setup-error.ts";

const mac = process.platform === "darwin";

/** First line that the command prints, undefined when it is missing or does not run. */
function firstLine(...command: string[]): string | undefined {
  if (Bun.which(command[0] ?? "") === null) return undefined;
  const { exitCode, stdout } = Bun.spawnSync(command, { stderr: "ignore" });
  return exitCode === 0 ? (stdout.toString().split("\n")[0] ?? "") : undefined;
}

function install(debian: string, macos: string): string {
  return `install it with: ${mac ? macos : `apt install ${debian}`}`;
}

/** Compares dotted versions: whether `version` is at least `least`. */
export function isAtLeast(version: string, least: string): boolean {
  return Bun.semver.order(padVersion(version), padVersion(least)) >= 0;
}

function padVersion(version: string): string {
  return [...version.split("."), "0", "0"].slice(0, 3).join(".");
}

/** Fails when python3 or its pip is missing. */
export function requirePip(): void {
  if (firstLine("python3", "--version") === undefined) {
    throw new SetupError(
      `python3 is missing; ${install("python3 python3-pip python3-venv", "xcode-select --install")}`,
    );
  }
  if (firstLine("python3", "-m", "pip", "--version") === undefined) {
    throw new SetupError(
      `pip is missing; ${install("python3-pip", "python3 -m ensurepip --upgrade")}`,
    );
  }
}

/** Fails when python3 is older than `least` or cannot make virtual environments. */
export function requireVenv(least: string): void {
  requirePip();
  const version = firstLine("python3", "-c", "import platform; print(platform.python_version())");
  if (version === undefined || !isAtLeast(version, least)) {
    throw new SetupError(
      `the tests need Python ${least} or newer, python3 is ${version}; ` +
        install("python3", "brew install python3"),
    );
  }
  if (firstLine("python3", "-c", "import ensurepip, venv; print()") === undefined) {
    throw new SetupError(
      `Python's venv is missing; ${install("python3-venv", "brew install python3")}`,
    );
  }
}

/** Fails when cargo is missing or does not run. */
export function requireCargo(): void {
  if (firstLine("cargo", "--version") === undefined) {
    throw new SetupError(
      `cargo is missing or does not run; ${install("cargo", "brew install rust")}`,
    );
  }
}

/** Fails when CMake, a build tool or a C++ compiler is missing; returns the CMake generator. */
export function requireCompiler(): "Ninja" | "Unix Makefiles" {
  const cmake = firstLine("cmake", "--version");
  if (cmake === undefined) {
    throw new SetupError(`cmake is missing; ${install("cmake", "brew install cmake")}`);
  }
  const compilers = [process.env["CXX"] || "c++", "g++", "clang++"];
  if (!compilers.some((name) => firstLine(name, "--version") !== undefined)) {
    throw new SetupError(`a C++ compiler is missing; ${install("g++", "xcode-select --install")}`);
  }
  if (Bun.which("ninja") !== null) return "Ninja";
  if (Bun.which("make") !== null) return "Unix Makefiles";
  throw new SetupError(`ninja is missing; ${install("ninja-build", "brew install ninja")}`);
}

function glibcVersion(): string | undefined {
  return firstLine("getconf", "GNU_LIBC_VERSION")?.match(/glibc (\S+)/)?.[1];
}

function macosVersion(): string {
  // The kernel's major version is the way to tell when sw_vers is not on the path.
  return firstLine("sw_vers", "-productVersion") ?? `Darwin ${release()}`;
}

/** The pins for this machine; fails when there are none or its system is too old for them. */
export function requirePlatform(): PinnedPlatform {
  const platform = pinnedPlatforms[platformName];
  if (platform === undefined) {
    const known = Object.keys(pinnedPlatforms).join(", ");
    throw new SetupError(
      `no native set for ${platformName} (there is one for ${known}); ` +
        "set MLXCEL_MLXC_PATH to a libmlxc of your own",
    );
  }
  const { glibc, macos } = platform;
  if (glibc !== undefined) {
    const found = glibcVersion();
    if (found === undefined || !isAtLeast(found, glibc)) {
      throw new SetupError(
        `MLX needs glibc ${glibc} or newer, this system has ${found ?? "another C library"}; ` +
          "use Debian 12, Ubuntu 22.04 or newer, or set MLXCEL_MLXC_PATH to a libmlxc of your own",
      );
    }
  }
  if (macos !== undefined && !isAtLeast(macosVersion(), macos)) {
    throw new SetupError(`MLX needs macOS ${macos} or newer, this system has ${macosVersion()}`);
  }
  return platform;
}
