/**
 * Installs what the program needs and npm does not bring: `bun vendor/setup.ts start|test [flags]`,
 * in the user's folder and with the flags of the program. Prints nothing and ends in milliseconds
 * when everything is in place.
 */
import { demoModelStore } from "./demo-model-store.ts";
import { ensureDemoModel, storeFolder } from "./demo-model.ts";
import { ensureNativeSet } from "./native-set.ts";
import { runSetup } from "./run-setup.ts";

const [command, ...flags] = Bun.argv.slice(2);

await runSetup(async () => {
  await ensureNativeSet();
  const store = command === "test" ? storeFolder() : await demoModelStore(flags, process.env);
  if (store !== undefined) await ensureDemoModel(store);
});
