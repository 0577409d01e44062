/**
 * Installs what the server needs and npm does not bring: `bun vendor/setup.ts [--demo-model]`.
 * Prints nothing and ends in milliseconds when everything is in place.
 */
import { runSetup } from "./run-setup.ts";
import { ensureDemoModel } from "./demo-model.ts";
import { ensureNativeSet } from "./native-set.ts";

await runSetup(async () => {
  await ensureNativeSet();
  if (Bun.argv.includes("--demo-model")) await ensureDemoModel();
});
