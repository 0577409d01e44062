/**
 * What `npm start` and `npm test` run: brings the npm packages and Bun into place with nothing but
 * Node, then hands over to Bun. Usage: node vendor/bootstrap.mjs start|test [flags]
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_MAJOR = 20;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const bun = join(root, "node_modules/.bin/bun");
const npmStamp = join(root, "node_modules/.mlxcel-stamp");
const npmLock = join(root, "vendor/cache/npm.lock");
const npmLog = join(root, "vendor/cache/logs/npm.log");

const DISK_FULL =
  "the disk is full: the npm packages need about 600 MB; free some space and run it again";
const BUN_MB = 250;

const MODEL_FLAGS = ["-m", "--model", "--embedding-model", "--reranker-model", "-hf", "--hf-repo"];
const MODEL_VARIABLES = [
  ...["MLXCEL_MODEL", "MLXCEL_EMBEDDING_MODEL", "MLXCEL_RERANKER_MODEL", "MLXCEL_HF_REPO"],
  ...["LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO"],
];

/** A failure that the user can act on: its message is the one line that is shown. */
class SetupError extends Error {}

/** Runs a command quietly, shows that it lives, and resolves to its exit code and output. */
function runQuietly(title, command, args) {
  const terminal = process.stderr.isTTY;
  const startedMs = Date.now();
  const show = () => {
    const seconds = Math.round((Date.now() - startedMs) / 1000);
    process.stderr.write(
      terminal ? `\r\x1b[2K${title} (${seconds} s)` : `${title}: (${seconds} s)\n`,
    );
  };
  if (!terminal) process.stderr.write(`${title} …\n`);
  const timer = setInterval(show, terminal ? 500 : 10_000);
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const end = (code) => {
      clearInterval(timer);
      if (terminal) process.stderr.write("\r\x1b[2K");
      resolve({ code, output });
    };
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => {
      output += error.message;
      end(1);
    });
    child.on("close", end);
  });
}

/** Why npm failed, in one line. */
function npmFailure(output) {
  if (/ENOSPC|no space left/i.test(output)) {
    return DISK_FULL;
  }
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED/.test(output)) {
    return `no network: npm could not fetch the packages; connect and run it again (log: ${npmLog})`;
  }
  const lines = output
    .split("\n")
    .filter((line) => /^npm error (?!code|A complete log)/.test(line));
  return `npm ci failed: ${(lines[0] ?? output.trim()).replace("npm error ", "")} (log: ${npmLog})`;
}

function freeMb() {
  const modules = join(root, "node_modules");
  const { bavail, bsize } = statfsSync(existsSync(modules) ? modules : root);
  return (bavail * bsize) / 1e6;
}

function writeLog(output) {
  mkdirSync(dirname(npmLog), { recursive: true });
  writeFileSync(npmLog, output);
}

async function installPackages(lockHash) {
  const retry = ["--fetch-retries=2", "--fetch-retry-mintimeout=2000", "--fetch-retry-factor=2"];
  const options = ["ci", "--include=dev", "--include=optional", "--loglevel=error", ...retry];
  const npm = process.env.npm_execpath?.endsWith(".js")
    ? [process.execPath, process.env.npm_execpath]
    : ["npm"];
  const { code, output } = await runQuietly("installing the npm packages", npm[0], [
    ...npm.slice(1),
    ...options,
  ]);
  if (code !== 0) {
    const failure = npmFailure(output);
    writeLog(output);
    throw new SetupError(failure);
  }
  if (spawnSync(bun, ["--version"]).status !== 0) await finishBun();
  writeFileSync(npmStamp, lockHash);
}

// npm may withhold the install script of a package; Bun's copies its program into place.
async function finishBun() {
  const script = join(root, "node_modules/bun/install.js");
  const { output } = await runQuietly("installing Bun", process.execPath, [script]);
  const { status, stderr, error } = spawnSync(bun, ["--version"], { encoding: "utf8" });
  if (status === 0) return;
  // npm leaves an optional package out without a word when the disk has no room for it.
  if (freeMb() < BUN_MB) throw new SetupError(DISK_FULL);
  writeLog(`${output}\n${stderr ?? ""}\n${error ?? ""}`);
  throw new SetupError(
    `Bun does not run: ${(stderr || error?.message || output).trim()} (log: ${npmLog})`,
  );
}

/** Whether the process that made the lock file, by its content, still runs. */
function holderLives(holder) {
  // A lock that was just made may not have its content yet.
  if (holder === "") return Date.now() - statSync(npmLock).mtimeMs < 2000;
  if (Number(holder) === process.pid) return false;
  try {
    process.kill(Number(holder), 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Removes the lock of a process that died, unless another one has replaced it meanwhile. */
function removeStaleLock(holder) {
  const aside = `${npmLock}.${process.pid}`;
  renameSync(npmLock, aside);
  if (readFileSync(aside, "utf8") !== holder) linkSync(aside, npmLock);
  rmSync(aside);
}

/** Takes the lock file; waits while another set-up that is alive holds it. */
async function takeLock() {
  mkdirSync(dirname(npmLock), { recursive: true });
  for (let waited = false; ; waited = true) {
    try {
      return writeFileSync(npmLock, String(process.pid), { flag: "wx" });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    try {
      const holder = readFileSync(npmLock, "utf8");
      if (!holderLives(holder)) removeStaleLock(holder);
      else if (!waited) process.stderr.write("waiting for another set-up of the npm packages …\n");
    } catch (error) {
      // The holder was done in the meantime: try again.
      if (error.code !== "ENOENT") throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function ensurePackages() {
  const lockHash = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const inPlace = () =>
    existsSync(bun) && existsSync(npmStamp) && readFileSync(npmStamp, "utf8") === lockHash;
  if (inPlace()) return;
  await takeLock();
  try {
    if (!inPlace()) await installPackages(lockHash);
  } finally {
    rmSync(npmLock, { force: true });
  }
}

/** Runs Bun with our terminal, hands it our signals, and resolves to its exit code. */
function runBun(args, env = process.env) {
  const child = spawn(bun, args, { cwd: root, env, stdio: "inherit" });
  const forward = (signal) => {
    // A terminal sends ctrl-C to the child as well; a second one would mean "now".
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      for (const name of signals) process.off(name, forward);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Runs Bun; a failure ends this program with the same exit code. */
async function mustRunBun(args, env) {
  const code = await runBun(args, env);
  if (code !== 0) process.exit(code);
}

function wantsDemoModel(flags) {
  if (flags[0] !== undefined && !flags[0].startsWith("-")) return false;
  if (MODEL_VARIABLES.some((name) => process.env[name])) return false;
  const quick = ["-h", "--help", "--version", ...MODEL_FLAGS];
  return !flags.some((flag) => quick.includes(flag.split("=")[0]));
}

/** The environment with the store that the flags name. */
function withStore(flags) {
  const at = flags.findIndex((flag) => flag.split("=")[0] === "--models-dir");
  if (at === -1) return process.env;
  const folder = flags[at].includes("=")
    ? flags[at].slice(flags[at].indexOf("=") + 1)
    : flags[at + 1];
  return folder === undefined ? process.env : { ...process.env, MLXCEL_MODELS_DIR: folder };
}

async function start(flags) {
  const demo = wantsDemoModel(flags) ? ["--demo-model"] : [];
  await mustRunBun(["vendor/setup.ts", ...demo], withStore(flags));
  process.exit(await runBun(["src/main.ts", ...flags]));
}

async function test(patterns) {
  await mustRunBun(["vendor/setup.ts", "--demo-model"]);
  await mustRunBun(["test/setup/setup.ts"]);
  process.exit(await runBun(["test/run.ts", ...patterns]));
}

async function main([name, ...flags]) {
  if (Number(process.versions.node.split(".")[0]) < NODE_MAJOR) {
    throw new SetupError(`Node ${NODE_MAJOR} or newer is needed, this is ${process.versions.node}`);
  }
  const commands = { start, test };
  if (name === undefined || !Object.hasOwn(commands, name)) {
    throw new SetupError("usage: node vendor/bootstrap.mjs start|test [flags]");
  }
  await ensurePackages();
  await commands[name](flags);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const line = error.code === "ENOSPC" ? DISK_FULL : error.message;
  process.stderr.write(`mlxcel set-up: ${line}\n`);
  process.exit(1);
}
