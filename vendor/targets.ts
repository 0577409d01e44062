/** The systems that executables are built for, and what goes into each. */
import { join } from "node:path";
import { ensureNativeSet } from "./native-set.ts";
import { librariesIn, type NativeFile, sharpFiles, type Target } from "./payload.ts";
import { platformName, vendorFolder } from "./pinned.ts";
import { SetupError } from "./setup-error.ts";

export const targets = ["linux-x64"] as const satisfies readonly Target[];

/** What an executable is made of besides the program. */
export interface Parts {
  readonly runtime: string;
  readonly files: readonly NativeFile[];
}

const modules = join(vendorFolder, "../node_modules");

/** Fetches and builds what is missing. */
export async function partsFor(target: Target): Promise<Parts> {
  if (platformName !== "linux-x64") {
    throw new SetupError(`executables are built on linux-x64, this is ${platformName}`);
  }
  await ensureNativeSet();
  return {
    runtime: join(modules, "bun/bin/bun.exe"),
    files: [...librariesIn(join(vendorFolder, "lib", target)), ...sharpFiles(modules, target)],
  };
}
