// @ts-check
/**
 * On which systems the native set runs. Plain JavaScript: the bootstrap asks before Bun is there, and the program asks
 * before it opens a native file.
 */
import { cpus, release } from "node:os";

/**
 * What a system says about itself.
 * @typedef {object} System
 * @property {string} platform `process.platform`
 * @property {string} arch `process.arch`: of this process, which Rosetta may translate
 * @property {string} release version of the kernel
 * @property {string | undefined} glibc version of the GNU C library; absent where another one is used
 * @property {string} processor its name
 */

/**
 * The oldest systems that the native sets run on, by `<os>-<arch>`; a part of the lock file.
 * @typedef {Readonly<Record<string, { readonly glibc?: string, readonly macos?: string }>>} OldestSystems
 */

/** @returns {System} */
export function thisSystem() {
  return {
    platform: process.platform,
    arch: process.arch,
    release: release(),
    glibc: process.platform === "linux" ? glibcVersion() : undefined,
    processor: cpus()[0]?.model ?? "",
  };
}

/** @returns {string | undefined} */
function glibcVersion() {
  const report = process.report.getReport();
  if (!("header" in report)) return undefined;
  const { header } = report;
  const version =
    typeof header === "object" && header !== null && "glibcVersionRuntime" in header
      ? header.glibcVersionRuntime
      : undefined;
  return typeof version === "string" ? version : undefined;
}

/**
 * Why the native set cannot run on a system, in one line; undefined when it can.
 * @param {System} system
 * @param {OldestSystems} oldest
 * @returns {string | undefined}
 */
export function systemProblem({ platform, arch, release, glibc, processor }, oldest) {
  if (platform === "darwin" && arch !== "arm64") {
    // Rosetta names the processor "VirtualApple".
    return processor.includes("Apple")
      ? "this process is translated by Rosetta; start it as an arm64 program (arch -arm64), with a Bun for arm64"
      : "a Mac with Apple silicon is needed; this one has an Intel processor";
  }
  const least = oldest[`${platform}-${arch}`];
  if (least === undefined) {
    const known = Object.keys(oldest).join(", ");
    return `there is no native set for ${platform}-${arch} (there is one for ${known}); set MLXCEL_MLXC_PATH to a libmlxc of your own`;
  }
  if (least.macos !== undefined && !isAtLeast(macosVersion(release), least.macos)) {
    return `macOS ${least.macos} or newer is needed; this is macOS ${macosVersion(release)}`;
  }
  if (least.glibc !== undefined && (glibc === undefined || !isAtLeast(glibc, least.glibc))) {
    return (
      `glibc ${least.glibc} or newer is needed, this system has ${glibc ?? "another C library"}; ` +
      "use Debian 12, Ubuntu 22.04 or newer, or set MLXCEL_MLXC_PATH to a libmlxc of your own"
    );
  }
  return undefined;
}

/**
 * The version of macOS that goes with a version of its kernel: Darwin 23.6 is macOS 14, Darwin 25.1 is macOS 26.
 * @param {string} release
 */
function macosVersion(release) {
  const kernel = Number.parseInt(release, 10);
  return String(kernel >= 25 ? kernel + 1 : kernel - 9);
}

/**
 * Compares dotted versions.
 * @param {string} version
 * @param {string} least
 */
export function isAtLeast(version, least) {
  const [own, wanted] = [version, least].map((text) => text.split(".").map(Number.parseFloat));
  for (const [i, number] of (wanted ?? []).entries()) {
    const difference = (own?.[i] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
