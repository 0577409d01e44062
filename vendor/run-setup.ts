import { say } from "./progress.ts";
import { diskFullError, saysDiskFull, SetupError } from "./setup-error.ts";

/** Runs a set-up; a failure becomes one line on stderr and exit code 1. */
export async function runSetup<T>(setup: () => Promise<T>): Promise<T> {
  try {
    return await setup();
  } catch (error) {
    const failure = saysDiskFull(error) ? diskFullError() : error;
    if (!(failure instanceof Error)) throw failure;
    say(`mlxcel set-up: ${failure instanceof SetupError ? failure.message : String(failure)}`);
    process.exit(1);
  }
}
