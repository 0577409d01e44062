/** The npm packages of another system than this: Bun's runtime and sharp. */
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
const FOR = {
  "darwin-arm64": ["--os=darwin", "--cpu=arm64"],
  "linux-arm64": ["--os=linux", "--cpu=arm64", "--libc=glibc"],
};
type ForeignPlatform = keyof typeof FOR;

async function npmCi(platform: ForeignPlatform, folder: string): Promise<void> {
  // Nothing of another system can run here, so no package may try.
  const options = ["--omit=dev", "--include=optional", "--ignore-scripts", "--loglevel=error"];
  try {
    await run(["npm", "ci", ...FOR[platform], ...options], {
      log: `npm-${platform}`,
      cwd: folder,
    });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw clientError("npm", `the packages for ${platform}`, error);
  }
}

/** The node_modules folder of `<os>-<arch>`, whose content npm has checked with package-lock.json. */
export async function ensureForeignPackages(platform: ForeignPlatform): Promise<string> {
  const folder = join(cacheFolder, `npm-${platform}`);
  const modules = join(folder, "node_modules");
  const key = contentKey(
    root,
    MANIFESTS.map((name) => join(root, name)),
  );
  if (isInstalled(folder, key)) return modules;
  await exclusively(
    join(cacheFolder, `npm-${platform}.lock`),
    async () => {
      if (isInstalled(folder, key)) return;
      await mkdir(cacheFolder, { recursive: true });
      await installFolder(folder, key, async (temporary) => {
        for (const name of MANIFESTS) copyFileSync(join(root, name), join(temporary, name));
        await step(`fetching Bun and sharp for ${platform}`, () => npmCi(platform, temporary));
      });
    },
    () => say(`waiting for another fetch of the packages for ${platform} …`),
  );
  return modules;
}
