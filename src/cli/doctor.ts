/** `mlxcel doctor`: what this machine, the native library and the local store look like. */
import { availableParallelism, cpus, freemem, release, totalmem } from "node:os";
import { z } from "zod";
import { memoryText } from "../hub/byte-text.ts";
import { placesOf } from "../hub/places.ts";
import { storedModels } from "../hub/store.ts";
import { checkDecoding } from "../media/decoding.ts";
import { cacheFolder } from "../native/cache-folder.ts";
import type { Environment } from "../native/environment.ts";
import { LibraryError } from "../native/library-error.ts";
import { oneLine } from "../native/one-line.ts";
import { jsonFlag } from "./command-flags.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { type MatmulRate, measureMatmul } from "./matmul-rate.ts";
import { parseFlags, readCommandLine } from "./parse.ts";
import { storedModelNamed } from "./stored-model.ts";
import { VERSION } from "./version.ts";

interface DoctorReport {
  readonly versions: { mlxcel: string; bun: string; mlx: string; mlxc: string };
  readonly platform: string;
  readonly cpu: { model: string; cores: number };
  readonly device: { kind: "cpu" | "gpu"; name: string | null; reason: string };
  readonly memory: { totalBytes: number; freeBytes: number };
  readonly nativeLibrary: string;
  readonly matmul: MatmulRate;
  /** libvips is null when it decodes no image; a warning says why. */
  readonly images: { libvips: string | null };
  readonly store: { directory: string; models: readonly ExaminedModel[] };
  /** Where an executable keeps its unpacked libraries, and where models of other programs are looked for. */
  readonly caches: { native: string; huggingFace: string };
  readonly warnings: readonly string[];
}

/** A model in the store, as far as its configuration tells. */
interface ExaminedModel {
  /** As `-m` takes it. */
  readonly name: string;
  readonly kind: string;
  readonly family: string;
  /** Why it does not load; null where nothing speaks against it. */
  readonly fault: string | null;
}

const schema = z.object({
  json: jsonFlag("lines"),
  help: flagsSchema.shape.help,
});

/** The table of its flags. */
export const DOCTOR: FlagTable<typeof schema> = {
  command: "mlxcel doctor",
  schema,
  flags: flagsOf(schema),
  bareWord: "doctor takes no words",
};

export function doctorHelp(colour: boolean): string {
  return commandHelp(
    DOCTOR,
    {
      title: "checks this machine, the native libraries and the local store",
      usage: [["mlxcel doctor [--json]", "exit code 1 if the libraries cannot be used"]],
    },
    colour,
  );
}

/** Two cores with an optimised BLAS exceed this; the reference BLAS reaches a tenth of it. */
const SLOW_GFLOPS = 60;

/**
 * Examines the machine; takes about a second, most of it matrix products.
 *
 * @throws LibraryError when the native library is missing or cannot be used
 */
export async function doctor(env: Environment): Promise<DoctorReport> {
  // Only here: importing it opens the native library, and that failure is one of doctor's findings
  const mx = await import("../../ffi/index.ts");
  const kind = mx.openDevice("auto");
  const cores = availableParallelism();
  const matmul = measureMatmul(mx, cores);
  const images = await examineDecoding();
  const { store, cache } = placesOf({ modelsDir: parseFlags([], env).flags.modelsDir, env });
  return {
    versions: { mlxcel: VERSION, bun: Bun.version, ...mx.versions },
    platform: `${process.platform} ${release()} ${process.arch}`,
    cpu: { model: cpus()[0]?.model.trim() ?? "unknown", cores },
    device: {
      kind,
      name: mx.deviceName(kind) ?? null,
      reason: kind === "gpu" ? "Metal is available" : "Metal is not available on this machine",
    },
    memory: { totalBytes: totalmem(), freeBytes: freemem() },
    nativeLibrary: mx.libraryPath,
    matmul,
    images: { libvips: images.libvips },
    store: { directory: store, models: await examineModels(store, env) },
    caches: { native: cacheFolder(env, process.platform), huggingFace: cache },
    warnings: [...(kind === "cpu" && cores > 1 ? slowProducts(matmul) : []), ...images.warnings],
  };
}

async function examineModels(store: string, env: Environment): Promise<readonly ExaminedModel[]> {
  const { families } = await import("../models/registry.ts");
  return storedModels(store).map((stored) => {
    const { name, kind, family, fault } = storedModelNamed(stored, store, env);
    const isKnown = families.some(({ modelType }) => modelType === family);
    const unknown = isKnown ? null : `the family ${family} is not supported`;
    return { name, kind, family, fault: fault ?? unknown };
  });
}

async function examineDecoding(): Promise<{ libvips: string | null; warnings: string[] }> {
  try {
    return { libvips: await checkDecoding(), warnings: [] };
  } catch (error) {
    const [reason] = String(error).split("\n");
    return { libvips: null, warnings: [`images cannot be decoded: ${reason}`] };
  }
}

function slowProducts({ bestGflops }: MatmulRate): string[] {
  if (bestGflops >= SLOW_GFLOPS) return [];
  return [
    `f32 matrix products reach only ${bestGflops.toFixed(0)} GFLOP/s: the machine is busy, or the native library ` +
      `lacks its BLAS; run npm start once to rebuild it`,
  ];
}

/** The report for people: one aligned line per finding. */
export function describeReport(report: DoctorReport): string {
  const { versions, cpu, device, memory, matmul, store } = report;
  const { mlxcel, bun, mlx, mlxc } = versions;
  const oneThread =
    matmul.oneThreadGflops === null ? "" : `, ${rate(matmul.oneThreadGflops)} on one thread`;
  const threads =
    matmul.threads === null ? "" : ` on ${matmul.threads} thread${matmul.threads === 1 ? "" : "s"}`;
  const lines: readonly (readonly [string, string])[] = [
    ["mlxcel", `${mlxcel} (Bun ${bun}, MLX ${mlx}, mlx-c ${mlxc})`],
    ["platform", report.platform],
    ["cpu", `${cpu.model}, ${cpu.cores} cores`],
    ["device", `${device.kind}${device.name ? ` (${device.name})` : ""}: ${device.reason}`],
    ["memory", `${memoryText(memory.totalBytes)}, ${memoryText(memory.freeBytes)} free`],
    ["native library", report.nativeLibrary],
    [
      "f32 matmul",
      `${rate(matmul.bestGflops)} at best, ${rate(matmul.medianGflops)} median${threads}${oneThread} (${matmul.shape.join(" x ")})`,
    ],
    ...(matmul.kernelGflops === null
      ? []
      : [["cpu kernels", `${rate(matmul.kernelGflops)} at best on the same product`] as const]),
    ["images", report.images.libvips ? `libvips ${report.images.libvips}` : "not decoded"],
    ["unpacked", report.caches.native],
    ["hf cache", report.caches.huggingFace],
    ["models", `${store.directory}${store.models.length === 0 ? " (none)" : ""}`],
    ...store.models.map((model): [string, string] => ["", modelLine(model)]),
    ...report.warnings.map((warning): [string, string] => ["warning", warning]),
  ];
  return lines.map(([label, text]) => `${label.padEnd(16)}${oneLine(text)}\n`).join("");
}

function modelLine({ name, kind, family, fault }: ExaminedModel): string {
  return fault === null ? `${name}: ${kind}, ${family}` : `${name} does not load: ${fault}`;
}

function rate(gflops: number): string {
  return `${gflops.toFixed(0)} GFLOP/s`;
}

/** The command: prints the report and gives the exit code, 1 when the native library cannot be used. */
export async function runDoctor(args: readonly string[], env: Environment): Promise<number> {
  const { json } = readCommandLine(DOCTOR, args, env).flags;
  try {
    const report = await doctor(env);
    await Bun.write(
      Bun.stdout,
      json ? `${JSON.stringify(report, null, 2)}\n` : describeReport(report),
    );
    return 0;
  } catch (error) {
    if (!(error instanceof LibraryError)) throw error;
    if (json) await Bun.write(Bun.stdout, `${JSON.stringify({ error: error.message }, null, 2)}\n`);
    else process.stderr.write(`mlxcel doctor: ${error.message}\n`);
    return 1;
  }
}
