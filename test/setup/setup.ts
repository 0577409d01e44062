/** Installs what only the tests need. Prints nothing when everything is in place. */
import { runSetup } from "../../vendor/run-setup.ts";
import { ensurePython } from "./python.ts";

await runSetup(ensurePython);
