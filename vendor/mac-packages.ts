/** The npm packages of a Mac on another system: Bun's runtime and sharp. */
import { copyFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { exclusively } from "../src/hub/exclusive.ts";
import { CommandError, run } from "./command.ts";
import { clientError } from "./download.ts";
import { installFolder, isInstalled } from "./install.ts";
import { cacheFolder, contentKey, vendorFolder } from "./pinned.ts";
import { say, step } from "./progress.ts";

const root = join(vendorFolder, "..");
const MANIFESTS = ["package.json", "package-lock.json", ".npmrc"];
const FOR_A_MAC = ["--os=darwin", "--cpu=arm64", "--omit=dev", "--include=optional"];

async function npmCi(folder: string): Promise<void> {
  // Nothing of a Mac can run here, so no package may try.
  const command = ["npm", "ci", ...FOR_A_MAC, "--ignore-scripts", "--loglevel=error"];
  try {
    await run(command, { log: "npm-darwin-arm64", cwd: folder });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw clientError("npm", "the packages for macOS", error);
  }
}

/** The node_modules folder, whose content npm has checked with package-lock.json. */
export async function ensureMacPackages(): Promise<string> {
  const folder = join(cacheFolder, "npm-darwin-arm64");
  const modules = join(folder, "node_modules");
  const key = contentKey(
    root,
    MANIFESTS.map((name) => join(root, name)),
  );
  if (isInstalled(folder, key)) return modules;
  await exclusively(
    join(cacheFolder, "npm-darwin-arm64.lock"),
    async () => {
      if (isInstalled(folder, key)) return;
      await mkdir(cacheFolder, { recursive: true });
      await installFolder(folder, key, async (temporary) => {
        for (const name of MANIFESTS) copyFileSync(join(root, name), join(temporary, name));
        await step("fetching Bun and sharp for macOS", () => npmCi(temporary));
      });
    },
    () => say("waiting for another fetch of the packages for macOS …"),
  );
  return modules;
}
