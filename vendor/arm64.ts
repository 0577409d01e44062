/** Linux on arm64, emulated: the native set and Bun for it, and how a program of it runs here. */
import { join } from "node:path";
import { arm64Toolchain } from "./build.ts";
import { ensureForeignPackages } from "./foreign-packages.ts";
import { ensureNativeSetBy } from "./native-set.ts";
import { requireArm64Tools } from "./requirements.ts";

/** Where Debian's cross compiler has the libraries of the emulated system. */
const SYSTEM = "/usr/aarch64-linux-gnu";
// Without SVE, which Apple's processors do not have either: under qemu 7.2 OpenBLAS's SVE kernels give wrong products.
const PROCESSOR = "max,sve=off";

/** The command that runs a program for arm64 on this processor. */
export function emulated(program: string): string[] {
  return ["qemu-aarch64", "-cpu", PROCESSOR, "-L", SYSTEM, program];
}

/**
 * Makes sure that Bun and the native set for arm64 are in place; returns the command that runs this Bun. Throws
 * SetupError when that cannot be.
 */
export async function ensureArm64(): Promise<string[]> {
  requireArm64Tools();
  await ensureNativeSetBy(arm64Toolchain);
  const modules = await ensureForeignPackages("linux-arm64");
  return emulated(join(modules, "@oven/bun-linux-aarch64/bin/bun"));
}
