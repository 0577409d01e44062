import { type PinnedPlatform, pinnedPlatforms, platformName } from "./pinned.ts";
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

/** Fails when CMake, a build tool or a C++ compiler is missing; returns the CMake generator. */
export function requireCompiler(): "Ninja" | "Unix Makefiles" {
  refuse(machine.lackMessage(machine.compilerLacks()));
  return machine.cmakeGenerator();
}

/** Fails when this machine cannot build the native set; names everything that is missing. */
export function requireBuildTools(): void {
  refuse(machine.platformProblem());
  refuse(machine.lackMessage(machine.buildLacks()));
}

/** The pins for this machine; fails when there are none or its system is too old for them. */
export function requirePlatform(): PinnedPlatform {
  refuse(machine.platformProblem());
  const platform = pinnedPlatforms[platformName];
  if (platform === undefined) throw new Error(`no pins for ${platformName}`);
  return platform;
}
