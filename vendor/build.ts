import { availableParallelism } from "node:os";
import { join } from "node:path";
import { CommandError, run } from "./command.ts";
import { vendorFolder } from "./pinned.ts";
import type { ReportFraction } from "./progress.ts";
import { requireCompiler } from "./requirements.ts";
import { SetupError } from "./setup-error.ts";

/** The unpacked parts that libmlxc is built from. */
export interface BuildInputs {
  /** Folder of the mlx-c sources. */
  readonly mlxC: string;
  /** Folder `mlx` of the unpacked MLX wheel. */
  readonly mlx: string;
  /** Folder of libscipy_openblas.so; there is none on macOS. */
  readonly openblas: string | undefined;
}

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

/** Compiles libmlxc in the empty folder `buildFolder`; returns the path of the library. */
export async function buildMlxC(
  inputs: BuildInputs,
  buildFolder: string,
  report: ReportFraction,
): Promise<string> {
  const generator = requireCompiler();
  const definitions = [
    "CMAKE_BUILD_TYPE=Release",
    `MLX_C_SOURCE=${inputs.mlxC}`,
    `MLX_DIR=${join(inputs.mlx, "share/cmake/MLX")}`,
    ...(inputs.openblas === undefined ? [] : [`OPENBLAS_DIR=${inputs.openblas}`]),
    ...(process.platform === "darwin" ? ["CMAKE_OSX_DEPLOYMENT_TARGET=14.0"] : []),
  ];
  const source = join(vendorFolder, "native");
  await cmake(
    ["-G", generator, "-S", source, "-B", buildFolder, ...definitions.map((each) => `-D${each}`)],
    report,
  );
  const jobs = String(availableParallelism());
  await cmake(["--build", buildFolder, "--target", "mlxc", "--parallel", jobs], report);
  return join(buildFolder, "lib", process.platform === "darwin" ? "libmlxc.dylib" : "libmlxc.so");
}
