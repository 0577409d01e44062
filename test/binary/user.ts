/** A user who has got nothing but the executable. */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Environment, Exit } from "../server.ts";

const ROOT = resolve(import.meta.dir, "../..");
export const EXECUTABLE = join(ROOT, "build/linux-x64/mlxcel");
export const MAC_EXECUTABLE = join(ROOT, "build/darwin-arm64/mlxcel");

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

const built = new Map<string, Promise<string>>();

/** Builds an executable once for all tests. */
function buildOnce(target: string, out: string): Promise<string> {
  const printed = built.get(target) ?? build("--target", target, "--out", out);
  built.set(target, printed);
  return printed;
}

/** The executable for this machine. */
export function builtExecutable(): Promise<string> {
  return buildOnce("linux-x64", EXECUTABLE);
}

/** The one for a Mac; the first time it takes minutes. */
export function builtMacExecutable(): Promise<string> {
  return buildOnce("darwin-arm64", MAC_EXECUTABLE);
}

export class User implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "mlxcel-user-"));
  readonly home = join(this.#folder, "home");
  /** Holds the executable and nothing else. */
  readonly work = join(this.#folder, "work");
  readonly executable = join(this.work, "mlxcel");
  /** No PATH: there is no Node, no Python and no Bun. */
  readonly env: Environment = { HOME: this.home };

  /** @param executable the file that the user has got */
  constructor(executable = EXECUTABLE) {
    mkdirSync(this.home);
    mkdirSync(this.work);
    copyFileSync(executable, this.executable);
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
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
