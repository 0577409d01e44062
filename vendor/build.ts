import { availableParallelism } from "node:os";
import { join } from "node:path";
import { CommandError, run } from "./command.ts";
import { platformName, vendorFolder } from "./pinned.ts";
import type { ReportFraction } from "./progress.ts";
import { cmakeGenerator } from "./requirements.mjs";
import { requireArm64Tools, requireBuildTools } from "./requirements.ts";
import { SetupError } from "./setup-error.ts";

/** The unpacked parts that libmlxc is built from. */
interface BuildInputs {
  /** Folder of the mlx-c sources. */
  readonly mlxC: string;
  /** Folder `mlx` of the unpacked MLX wheel. */
  readonly mlx: string;
  /** Folder of libscipy_openblas.so; there is none on macOS. */
  readonly openblas: string | undefined;
}

/** What compiles libmlxc, and for which system. */
export interface Toolchain {
  /** `<os>-<arch>` */
  readonly platform: string;
  /** Fails when this machine lacks what a build takes; names everything that is missing. */
  readonly requireTools: () => void;
  /** What CMake is told about it. */
  readonly definitions: readonly string[];
}

/** For this machine. */
export const ownToolchain: Toolchain = {
  platform: platformName,
  requireTools: requireBuildTools,
  definitions: process.platform === "darwin" ? ["CMAKE_OSX_DEPLOYMENT_TARGET=14.0"] : [],
};

/** Debian's cross compiler. */
export const arm64Toolchain: Toolchain = {
  platform: "linux-arm64",
  requireTools: requireArm64Tools,
  definitions: [
    "CMAKE_SYSTEM_NAME=Linux",
    "CMAKE_SYSTEM_PROCESSOR=aarch64",
    "CMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
    "CMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
  ],
};

// Ninja prints [7/30] before each step, make prints [ 23%].
function fractionIn(line: string): number | undefined {
  const [, done, total, percent] = /^\[(?:(\d+)\/(\d+)|\s*(\d+)%)\]/.exec(line) ?? [];
  if (percent !== undefined) return Number(percent) / 100;
  return total === undefined ? undefined : Number(done) / Number(total);
}

async function cmake(args: string[], report: ReportFraction): Promise<void> {
  try {
    await run(["cmake", ...args], {
      log: "cmake",
      onLine: (line) => {
        const fraction = fractionIn(line);
        if (fraction !== undefined) report(fraction);
      },
    });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const cause = error.lines.find((line) => /error[: ]/i.test(line))?.trim() ?? error.message;
    throw new SetupError(`libmlxc does not compile: ${cause} (log: ${error.log})`);
  }
}

/** What CMake is asked for, in `buildFolder`. */
export function configureArguments(
  inputs: BuildInputs,
  toolchain: Toolchain,
  buildFolder: string,
): string[] {
  const definitions = [
    "CMAKE_BUILD_TYPE=Release",
    `MLX_C_SOURCE=${inputs.mlxC}`,
    `MLX_DIR=${join(inputs.mlx, "share/cmake/MLX")}`,
    ...(inputs.openblas === undefined ? [] : [`OPENBLAS_DIR=${inputs.openblas}`]),
    ...toolchain.definitions,
  ];
  return [
    ...["-G", cmakeGenerator(), "-S", join(vendorFolder, "native"), "-B", buildFolder],
    ...definitions.map((each) => `-D${each}`),
  ];
}

/** Compiles libmlxc in the empty folder `buildFolder`; returns the path of the library. */
export async function buildMlxC(
  inputs: BuildInputs,
  toolchain: Toolchain,
  buildFolder: string,
  report: ReportFraction,
): Promise<string> {
  await cmake(configureArguments(inputs, toolchain, buildFolder), report);
  const jobs = String(availableParallelism());
  await cmake(["--build", buildFolder, "--target", "mlxc", "--parallel", jobs], report);
  const suffix = toolchain.platform.startsWith("darwin") ? "dylib" : "so";
  return join(buildFolder, "lib", `libmlxc.${suffix}`);
}
