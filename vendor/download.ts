import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { copyFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { CommandError, run } from "./command.ts";
import { cacheFolder, type PinnedCrate, type PinnedWheel } from "./pinned.ts";
import { type ReportFraction, step } from "./progress.ts";
import { crateInCargoHome } from "./requirements.mjs";
import { requireCargo, requirePip } from "./requirements.ts";
import { SetupError } from "./setup-error.ts";

const downloads = join(cacheFolder, "downloads");
const NETWORK_FAILURE =
  /connection (error|refused|broken)|newconnectionerror|connect(ion)? ?timeout|timed out|timeout was reached|temporary failure|name or service|resolve host|(could not|couldn't|failed to) connect|unreachable|proxyerror|sslerror|max retries|spurious network error|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/i;
const POLL_MS = 200;

/** Hex SHA-256 of a file's content. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest("hex");
}

/** Throws a SetupError that names the file, the expected and the found hash when they differ. */
export async function verifySha256(path: string, expected: string): Promise<void> {
  const got = await sha256Of(path);
  if (got === expected) return;
  throw new SetupError(
    `${basename(path)} is not the pinned file: expected sha256 ${expected}, got ${got}`,
  );
}

async function isVerified(path: string, sha256: string): Promise<boolean> {
  return existsSync(path) && (await sha256Of(path)) === sha256;
}

/** The one line for a package client that failed; whatever is not the network is quoted. */
export function clientError(client: string, wanted: string, error: CommandError): SetupError {
  const offline = error.lines.find((line) => NETWORK_FAILURE.test(line));
  const cause =
    offline === undefined
      ? `${client} could not fetch ${wanted}: ${error.lastLine(/^\s*(error|ERROR|npm error (?!A complete log))/)}`
      : `no network: ${client} could not fetch ${wanted}; connect and run it again`;
  return new SetupError(`${cause} (log: ${error.log})`);
}

function bytesIn(folder: string): number {
  let total = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const { size } = statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false }) ?? {};
    if (entry.isFile()) total += size ?? 0;
  }
  return total;
}

// pip writes into a folder of its own under TMPDIR and moves the finished file: count both.
async function pipDownload(wheel: PinnedWheel, folder: string, report: ReportFraction) {
  const platform = wheel.platform === "any" ? [] : ["--platform", wheel.platform];
  const timer = setInterval(() => report(bytesIn(folder) / wheel.bytes), POLL_MS);
  try {
    await run(
      [
        ...["python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"],
        ...["--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"],
        ...["--timeout", "30", ...platform, "--dest", folder, `${wheel.name}==${wheel.version}`],
      ],
      { log: `pip-${wheel.name}`, cwd: folder, env: { TMPDIR: folder } },
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw clientError("pip", `${wheel.name} ${wheel.version}`, error);
  } finally {
    clearInterval(timer);
  }
}

async function freshFolder(path: string): Promise<string> {
  await rm(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}

/** Path of the verified wheel; fetched with pip unless an earlier set-up left it. */
export async function fetchWheel(wheel: PinnedWheel): Promise<string> {
  const path = join(downloads, wheel.file);
  if (await isVerified(path, wheel.sha256)) return path;
  requirePip();
  const megabytes = Math.ceil(wheel.bytes / 1e6);
  return step(`fetching ${wheel.name} ${wheel.version} (${megabytes} MB)`, async (report) => {
    const folder = await freshFolder(join(cacheFolder, `pip.${wheel.name}`));
    await pipDownload(wheel, folder, report);
    const fetched = join(folder, wheel.file);
    if (!existsSync(fetched)) {
      throw new SetupError(`pip fetched ${readdirSync(folder).join(", ")}, not ${wheel.file}`);
    }
    await verifySha256(fetched, wheel.sha256);
    mkdirSync(downloads, { recursive: true });
    await rename(fetched, path);
    await rm(folder, { recursive: true, force: true });
    return path;
  });
}

/** Deletes a fetched wheel that is of no more use. */
export async function dropWheel(wheel: PinnedWheel): Promise<void> {
  await rm(join(downloads, wheel.file), { force: true });
}

async function cargoFetch(crate: PinnedCrate): Promise<void> {
  const folder = await freshFolder(join(cacheFolder, "cargo"));
  const manifest = [
    '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"',
    `[dependencies]\n${crate.crate} = "=${crate.version}"\n`,
  ].join("\n");
  mkdirSync(join(folder, "src"));
  await writeFile(join(folder, "Cargo.toml"), manifest);
  await writeFile(join(folder, "src/lib.rs"), "");
  try {
    await run(["cargo", "fetch"], {
      log: "cargo",
      cwd: folder,
      env: { CARGO_TERM_COLOR: "never", CARGO_TERM_PROGRESS_WHEN: "never" },
    });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    // An older cargo may choke on a dependency that nobody here builds; the crate is what counts.
    if (crateInCargoHome(crate.file) !== undefined) return;
    throw clientError("cargo", `${crate.crate} ${crate.version}`, error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Path of the verified crate; fetched with cargo unless an earlier set-up left it. */
export async function fetchCrate(crate: PinnedCrate): Promise<string> {
  const path = join(downloads, crate.file);
  if (await isVerified(path, crate.sha256)) return path;
  if (crateInCargoHome(crate.file) === undefined) {
    requireCargo();
    await step(`fetching ${crate.crate} ${crate.version}`, () => cargoFetch(crate));
  }
  const fetched = crateInCargoHome(crate.file);
  if (fetched === undefined) throw new SetupError(`cargo fetch did not leave ${crate.file}`);
  await verifySha256(fetched, crate.sha256);
  mkdirSync(downloads, { recursive: true });
  await copyFile(fetched, `${path}.tmp.${process.pid}`);
  await rename(`${path}.tmp.${process.pid}`, path);
  return path;
}

/** Unpacks a wheel into `folder`. */
export async function unpackWheel(wheel: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await unpack(["python3", "-m", "zipfile", "-e", wheel, folder], wheel, folder);
}

/** Unpacks a crate into `folder`, without the `<name>-<version>` folder around it. */
export async function unpackCrate(crate: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await unpack(["tar", "-xzf", crate, "-C", folder, "--strip-components=1"], crate, folder);
}

async function unpack(command: string[], archive: string, folder: string): Promise<void> {
  try {
    await run(command, { log: `unpack-${basename(archive)}`, cwd: folder });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new SetupError(
      `cannot unpack ${basename(archive)}: ${error.message} (log: ${error.log})`,
    );
  }
}
