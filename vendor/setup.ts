/**
 * Installs what the program needs and npm does not bring: `bun vendor/setup.ts start|test [flags]`,
 * in the user's folder and with the flags of the program. Prints nothing and ends in milliseconds
 * when everything is in place.
 */
import { join } from "node:path";
import { demoModelStore } from "./demo-model-store.ts";
import { ensureDemoModel, storeFolder } from "./demo-model.ts";
import { isInstalled } from "./install.ts";
import { ensureNativeSet } from "./native-set.ts";
import { nativeSetKey, platformName, vendorFolder } from "./pinned.ts";
import { requireBuildTools } from "./requirements.ts";
import { runSetup } from "./run-setup.ts";

const [command, ...flags] = Bun.argv.slice(2);

await runSetup(async () => {
  const isBuilt = isInstalled(join(vendorFolder, "lib", platformName), nativeSetKey());
  if (!isBuilt && !process.env["MLXCEL_MLXC_PATH"]) requireBuildTools();
  await ensureNativeSet();
  const store = command === "test" ? storeFolder() : await demoModelStore(flags, process.env);
  if (store !== undefined) await ensureDemoModel(store);
});
