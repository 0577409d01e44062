import * as machine from "./requirements.mjs";
import { SetupError } from "./setup-error.ts";

function refuse(message: string | undefined): void {
  if (message !== undefined) throw new SetupError(message);
}

/** Fails when python3 or its pip is missing or does not run. */
export function requirePip(): void {
  refuse(machine.lackMessage(machine.pipLacks()));
}

/** Fails when python3 is too old for the test clients or cannot make virtual environments. */
export function requireVenv(): void {
  refuse(machine.lackMessage(machine.venvLacks()));
}

/** Fails when cargo is missing or does not run. */
export function requireCargo(): void {
  refuse(machine.lackMessage(machine.cargoLacks()));
}

/** Fails when this machine cannot run or build the native set; names everything that is missing. */
export function requireBuildTools(): void {
  refuse(machine.platformProblem());
  refuse(machine.lackMessage(machine.buildLacks()));
}

/** Fails when this machine cannot build the native set for arm64 or run it; names everything that is missing. */
export function requireArm64Tools(): void {
  refuse(machine.arm64Problem());
  refuse(machine.lackMessage(machine.arm64Lacks()));
}
