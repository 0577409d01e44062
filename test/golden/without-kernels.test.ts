import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import * as mx from "../../ffi/index.ts";

mx.openDevice("cpu");

const ROOT = join(import.meta.dir, "../..");
const TIMEOUT_MS = 300_000;

/** The tests of the networks in a process of their own, which chooses its kernels when it starts. */
async function failuresWith(setting: string, ...files: string[]): Promise<string[]> {
  const child = Bun.spawn([process.execPath, "test", "--timeout=120000", ...files], {
    cwd: ROOT,
    env: { ...process.env, MLXCEL_KERNELS: setting },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const output = await child.stderr.text();
  expect(output).toMatch(/^ *[1-9]\d* pass$/m);
  return output.split("\n").filter((line) => line.startsWith("(fail)"));
}

test(
  "plain operations of mlx give the reference numbers too",
  async () => {
    const golden = readdirSync(import.meta.dir).filter((name) => /^(?!without).*\.test/.test(name));
    const files = golden.map((name) => `test/golden/${name}`);
    const failures = await failuresWith("off", "src/nn", ...files);
    expect(failures).toEqual([]);
  },
  TIMEOUT_MS,
);

test("kernels that the CPU lacks are refused by name", () => {
  const code = 'import("./ffi/index.ts").catch((error) => console.log(error.message))';
  const { stdout } = Bun.spawnSync([process.execPath, "-e", code], {
    cwd: ROOT,
    env: { ...process.env, MLXCEL_KERNELS: "avx1024" },
  });
  expect(stdout.toString()).toMatch(
    mx.kernels() ? /"avx1024" is not known or beyond this CPU; off, baseline/ : /^$/,
  );
});
