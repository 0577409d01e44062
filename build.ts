/**
 * Builds the executables: `bun build.ts [--target linux-x64|darwin-arm64]… [--out FILE]`. Without --target it builds
 * both into build/.
 */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeExecutable } from "./vendor/bundle.ts";
import { commitOf } from "./vendor/commit.ts";
import { compressed, type Target } from "./vendor/payload.ts";
import { say, step } from "./vendor/progress.ts";
import { runSetup } from "./vendor/run-setup.ts";
import { SetupError } from "./vendor/setup-error.ts";
import { partsFor, targets } from "./vendor/targets.ts";

const { values: flags } = parseArgs({
  options: { target: { type: "string", multiple: true }, out: { type: "string" } },
});

function chosenTargets(): readonly Target[] {
  const names = flags.target ?? targets;
  return names.map((name) => {
    const target = targets.find((each) => each === name);
    if (target === undefined) {
      throw new SetupError(`--target takes ${targets.join(" or ")}, not ${name}`);
    }
    return target;
  });
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

await runSetup(async () => {
  const chosen = chosenTargets();
  if (flags.out !== undefined && chosen.length > 1) {
    throw new SetupError("--out names one file; choose one target with --target");
  }
  for (const target of chosen) {
    const out = resolve(flags.out ?? join(import.meta.dir, "build", target, "mlxcel"));
    const { runtime, files } = await partsFor(target);
    const embedded = await step(`compressing the native set for ${target}`, () =>
      compressed(files),
    );
    const commit = await commitOf(import.meta.dir);
    await step(`writing ${out}`, () =>
      writeExecutable({ target, runtime, commit, files: embedded, out }),
    );
    for (const { name, bytes, path } of embedded) {
      say(`  ${name}: ${megabytes(bytes)}, ${megabytes(statSync(path).size)} inside`);
    }
    say(`${out}: ${megabytes(statSync(out).size)}`);
  }
});
