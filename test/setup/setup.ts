/** Installs what only the tests need. Prints nothing when everything is in place. */
import { runSetup } from "../../vendor/run-setup.ts";
import { ensurePython } from "./python.ts";
import { ensureTokenizers } from "./tokenizers.ts";

await runSetup(async () => {
  await ensurePython();
  await ensureTokenizers();
});
