/** The systems that executables are built for, and what goes into each. */
import { join } from "node:path";
import { type Component, componentsOf } from "./components.ts";
import { ensureForeignPackages } from "./foreign-packages.ts";
import { ensureMacNativeSet } from "./mac-native-set.ts";
import { ensureNativeSet } from "./native-set.ts";
import { librariesIn, type NativeFile, sharpFiles } from "./payload.ts";
import { platformName, vendorFolder } from "./pinned.ts";
import { SetupError } from "./setup-error.ts";

export const targets = ["linux-x64", "darwin-arm64"] as const;
export type Target = (typeof targets)[number];

/** What an executable is made of besides the program. */
interface Parts {
  /** The Bun that it starts with. */
  readonly runtime: string;
  readonly files: readonly NativeFile[];
  readonly components: readonly Component[];
}

const modules = join(vendorFolder, "../node_modules");

/** Fetches and builds what is missing. */
export async function partsFor(target: Target): Promise<Parts> {
  if (platformName !== "linux-x64") {
    throw new SetupError(`executables are built on linux-x64, this is ${platformName}`);
  }
  return target === "linux-x64" ? linuxParts() : macParts();
}

async function linuxParts(): Promise<Parts> {
  await ensureNativeSet();
  const nativeSet = join(vendorFolder, "lib/linux-x64");
  return {
    runtime: join(modules, "bun/bin/bun.exe"),
    files: [...librariesIn(nativeSet), ...sharpFiles(modules, "linux-x64")],
    components: componentsOf({ target: "linux-x64", nativeSet, modules }),
  };
}

async function macParts(): Promise<Parts> {
  const macModules = await ensureForeignPackages("darwin-arm64");
  const nativeSet = await ensureMacNativeSet();
  return {
    runtime: join(macModules, "@oven/bun-darwin-aarch64/bin/bun"),
    files: [...librariesIn(nativeSet), ...sharpFiles(macModules, "darwin-arm64")],
    components: componentsOf({ target: "darwin-arm64", nativeSet, modules: macModules }),
  };
}
