/**
 * Builds the executables into build/, or with --release everything that a release consists of into dist/.
 *
 *     bun build.ts [--target linux-x64|darwin-arm64]… [--out FILE]
 *     bun build.ts --release --release-url URL [--out FOLDER]
 */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { version } from "./package.json";
import { byteText } from "./src/hub/byte-text.ts";
import { writeExecutable } from "./vendor/bundle.ts";
import { commitOf } from "./vendor/commit.ts";
import { licensesText } from "./vendor/components.ts";
import { compressed } from "./vendor/payload.ts";
import { say, step } from "./vendor/progress.ts";
import { type Product, writeRelease } from "./vendor/release.ts";
import { runSetup } from "./vendor/run-setup.ts";
import { SetupError } from "./vendor/setup-error.ts";
import { partsFor, type Target, targets } from "./vendor/targets.ts";

const USAGE =
  "usage: bun build.ts [--target linux-x64|darwin-arm64] [--out FILE] | --release --release-url URL [--out FOLDER]";

function readFlags() {
  try {
    return parseArgs({
      options: {
        target: { type: "string", multiple: true },
        out: { type: "string" },
        release: { type: "boolean" },
        "release-url": { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new SetupError(`${error instanceof Error ? error.message : String(error)}; ${USAGE}`);
  }
}

function knownTarget(name: string): Target {
  const target = targets.find((each) => each === name);
  if (target !== undefined) return target;
  throw new SetupError(`--target takes ${targets.join(" or ")}, not ${name}`);
}

async function build(target: Target, out: string): Promise<Product> {
  const { runtime, files, components } = await partsFor(target);
  const embedded = await step(`compressing the native set for ${target}`, () => compressed(files));
  const commit = await commitOf(import.meta.dir);
  const licenses = licensesText(components);
  await step(`writing ${out}`, () =>
    writeExecutable({ target, runtime, commit, files: embedded, licenses, out }),
  );
  for (const { name, bytes, path } of embedded) {
    say(`  ${name}: ${byteText(bytes)}, ${byteText(statSync(path).size)} inside`);
  }
  sayFile(out);
  return { target, executable: out, components };
}

function sayFile(path: string): void {
  say(`${path}: ${byteText(statSync(path).size)}`);
}

function buildPath(target: Target): string {
  return join(import.meta.dir, "build", target, "mlxcel");
}

async function release(url: string | undefined, dist: string): Promise<void> {
  if (url === undefined) {
    throw new SetupError(
      "--release needs --release-url, the address that its files will lie under",
    );
  }
  const products: Product[] = [];
  for (const target of targets) products.push(await build(target, buildPath(target)));
  const place = { version, url: url.replace(/\/+$/, "") };
  const names = await step(`writing ${dist}`, () => writeRelease(products, place, dist));
  for (const name of names) sayFile(join(dist, name));
}

await runSetup(async () => {
  const flags = readFlags();
  if (flags.release) {
    return release(flags["release-url"], resolve(flags.out ?? join(import.meta.dir, "dist")));
  }
  const chosen = (flags.target ?? targets).map(knownTarget);
  if (flags.out !== undefined && chosen.length > 1) {
    throw new SetupError("--out names one file; choose one target with --target");
  }
  for (const target of chosen) await build(target, resolve(flags.out ?? buildPath(target)));
});
