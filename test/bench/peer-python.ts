import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Python packages that cannot share an environment, and what names a Python that has them already. */
const ENVIRONMENTS = {
  peers: { setting: "MLXCEL_BENCH_PYTHON", requirements: "requirements.txt", folder: ".venv" },
  infinity: {
    setting: "MLXCEL_BENCH_INFINITY_PYTHON",
    requirements: "infinity-requirements.txt",
    folder: ".venv-infinity",
  },
} as const;

function run(command: string[]): void {
  const { exitCode } = Bun.spawnSync(command, { stdout: "inherit", stderr: "inherit" });
  if (exitCode !== 0) throw new Error(`\`${command.join(" ")}\` failed with exit code ${exitCode}`);
}

/**
 * A Python that has these packages: that of the environment variable, else that of a virtual environment which is made
 * on first use (several GB).
 */
export function peerPython(packages: keyof typeof ENVIRONMENTS): string {
  const { setting, requirements, folder } = ENVIRONMENTS[packages];
  const given = process.env[setting];
  if (given) return given;
  const list = join(import.meta.dir, requirements);
  const venv = join(import.meta.dir, folder);
  const stamp = join(venv, "requirements.sha256");
  const wanted = createHash("sha256").update(readFileSync(list)).digest("hex");
  const python = join(venv, "bin", "python");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return python;
  console.error(`installing ${requirements} (several GB); this takes some minutes`);
  run(["python3", "-m", "venv", venv]);
  run([python, "-m", "pip", "install", "--quiet", "-r", list]);
  writeFileSync(stamp, wanted);
  return python;
}
