/** A user who has got nothing but the executable. */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Environment, Exit } from "../server.ts";

const ROOT = resolve(import.meta.dir, "../..");
export const EXECUTABLE = join(ROOT, "build/linux-x64/mlxcel");

/** Builds an executable the way a developer does; resolves to what is printed. */
export async function build(...flags: string[]): Promise<string> {
  const child = Bun.spawn([process.execPath, join(ROOT, "build.ts"), ...flags], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`the build failed:\n${stdout}${stderr}`);
  return stdout + stderr;
}

let built: Promise<string> | undefined;

/** The executable for this machine, built once for all tests. */
export function builtExecutable(): Promise<string> {
  built ??= build("--target", "linux-x64", "--out", EXECUTABLE);
  return built;
}

export class User implements Disposable {
  private readonly folder = mkdtempSync(join(tmpdir(), "mlxcel-user-"));
  readonly home = join(this.folder, "home");
  /** Holds the executable and nothing else. */
  readonly work = join(this.folder, "work");
  readonly executable = join(this.work, "mlxcel");
  /** No PATH: there is no Node, no Python and no Bun. */
  readonly env: Environment = { HOME: this.home };

  constructor() {
    mkdirSync(this.home);
    mkdirSync(this.work);
    copyFileSync(EXECUTABLE, this.executable);
  }

  /** The caches of this user; the native set is unpacked there. */
  get cache(): string {
    return join(this.home, ".cache/mlxcel");
  }

  start(args: readonly string[], env: Environment = {}): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    return Bun.spawn([this.executable, ...args], {
      cwd: this.work,
      env: { ...this.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  /** Runs the program to its end. */
  async run(args: readonly string[], env: Environment = {}): Promise<Exit> {
    const child = this.start(args, env);
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { exitCode: await child.exited, stdout, stderr };
  }

  /** Names in the cache. */
  cached(): string[] {
    return readdirSync(this.cache).sort();
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
