import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storedModels } from "../hub/store.ts";
import { describeReport, doctor } from "./doctor.ts";

const home = mkdtempSync(join(tmpdir(), "mlxcel-doctor-"));
const store = join(home, "mlxcel", "models");
afterAll(() => rmSync(home, { recursive: true }));

const CONFIGS = {
  "acme/small": { model_type: "bert", architectures: ["BertModel"] },
  plain: { model_type: "mamba", architectures: ["MambaForCausalLM"] },
  torn: {},
};
for (const [model, config] of Object.entries(CONFIGS)) {
  mkdirSync(join(store, model), { recursive: true });
  writeFileSync(join(store, model, "config.json"), JSON.stringify(config));
}
mkdirSync(join(store, "acme", "half-copied"));

interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const command = [process.execPath, join(import.meta.dir, "../main.ts"), "doctor", ...args];
  const child = Bun.spawn(command, {
    env: { ...process.env, XDG_CACHE_HOME: home, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

describe("doctor", () => {
  test("--json reports versions, device, library, matrix products and the store's models", async () => {
    const { exitCode, stdout } = await runCommand(["--json"]);
    expect(exitCode).toBe(0);
    const report: unknown = JSON.parse(stdout);
    expect(report).toMatchObject({
      versions: {
        mlxcel: expect.stringMatching(/^\d+\.\d+\.\d+/),
        bun: Bun.version,
        mlx: expect.stringMatching(/^\d+\.\d+\.\d+/),
        mlxc: "0.7.0",
      },
      device: { kind: expect.stringMatching(/^(cpu|gpu)$/) },
      nativeLibrary: expect.stringContaining("libmlxc"),
      matmul: { shape: [2048, 768, 3072], bestGflops: expect.any(Number) },
      images: { libvips: expect.stringMatching(/^\d+\.\d+/) },
      store: {
        directory: store,
        models: [
          { name: "acme/small", kind: "embedding", family: "bert", fault: null },
          { name: "plain", kind: "chat", family: "mamba", fault: expect.stringContaining("mamba") },
          { name: "torn", kind: "unreadable", fault: expect.stringContaining("model_type") },
        ],
      },
      caches: { native: join(home, "mlxcel"), huggingFace: join(home, "huggingface", "hub") },
    });
  });

  test("prints the same for people, a line per finding", async () => {
    const { exitCode, stdout } = await runCommand([]);
    expect(exitCode).toBe(0);
    for (const line of [
      /^mlxcel +\d/m,
      /^f32 matmul +\d+ GFLOP\/s at best/m,
      /^ +acme\/small: embedding, bert$/m,
      /^ +torn does not load: .+model_type/m,
    ]) {
      expect(stdout).toMatch(line);
    }
  });

  test("without the native library says what to do in one line and fails", async () => {
    const missing = join(home, "nowhere");
    const { exitCode, stdout, stderr } = await runCommand([], { MLXCEL_MLXC_PATH: missing });
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: `mlxcel doctor: native library not found at ${missing}: correct MLXCEL_MLXC_PATH, or unset it and run npm start once\n`,
    });
  });

  test("names a file that is not the library", async () => {
    const path = join(store, "plain", "config.json");
    const { exitCode, stderr } = await runCommand([], { MLXCEL_MLXC_PATH: path });
    expect(exitCode).toBe(1);
    expect(stderr).toStartWith(`mlxcel doctor: native library ${path} cannot be used`);
    expect(stderr.trim()).not.toContain("\n");
  });

  test("measures with all cores and the kernels, restores the threads that were set, and says so in words", async () => {
    const mx = await import("../../ffi/index.ts");
    const before = mx.blasThreads();
    const report = await doctor({ XDG_CACHE_HOME: home });
    const { matmul, cpu, device } = report;
    expect(mx.blasThreads()).toBe(before);
    expect(matmul.threads).toBe(before === undefined ? null : cpu.cores);
    expect(matmul.kernelGflops).toEqual(device.kind === "cpu" ? expect.any(Number) : null);
    const text = describeReport({
      ...report,
      matmul: { ...matmul, threads: 1, oneThreadGflops: 4 },
      warnings: ["slow"],
    });
    expect(text).toMatch(/on 1 thread, 4 GFLOP\/s on one thread/);
    expect(text).toMatch(/^warning +slow$/m);
  });

  test("measures no kernels where they are off", async () => {
    const { stdout } = await runCommand([], { MLXCEL_KERNELS: "off" });
    expect(stdout).not.toContain("cpu kernels");
  });

  test("finds no models where there is no store", () => {
    expect(storedModels(join(home, "none"))).toEqual([]);
  });
});
