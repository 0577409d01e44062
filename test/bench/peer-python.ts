import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const VENV = join(import.meta.dir, ".venv");
const REQUIREMENTS = join(import.meta.dir, "requirements.txt");
const STAMP = join(VENV, "requirements.sha256");

function run(command: string[]): void {
  const { exitCode } = Bun.spawnSync(command, { stdout: "inherit", stderr: "inherit" });
  if (exitCode !== 0) throw new Error(`\`${command.join(" ")}\` failed with exit code ${exitCode}`);
}

/**
 * A Python that has the peers' packages: that of MLXCEL_BENCH_PYTHON, else that of a virtual environment which is made
 * on first use (several GB).
 */
export function peerPython(): string {
  const given = process.env["MLXCEL_BENCH_PYTHON"];
  if (given) return given;
  const wanted = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex");
  const python = join(VENV, "bin", "python");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return python;
  console.error("installing the peers' Python packages (several GB); this takes some minutes");
  run(["python3", "-m", "venv", VENV]);
  run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]);
  writeFileSync(STAMP, wanted);
  return python;
}
