/**
 * What `npm start`, `npm test`, `npm run test:arm64` and `npm run build` run: brings the npm packages and Bun into place
 * with nothing but Node, then hands over to Bun. Usage: node vendor/bootstrap.mjs start|test|test-arm64|build [flags]
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
import {
  arm64Lacks,
  arm64Problem,
  buildLacks,
  lackMessage,
  platformProblem,
  venvLacks,
} from "./requirements.mjs";

const NODE_MAJOR = 20;
const PARENT_POLL_MS = 500;
const SAME_SIGNAL_MS = 300;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const bun = join(root, "node_modules/.bin/bun");
const npmStamp = join(root, "node_modules/.mlxcel-stamp");
const npmLock = join(root, "vendor/cache/npm.lock");
const npmLog = join(root, "vendor/cache/logs/npm.log");

const DISK_FULL =
  "the disk is full: the npm packages need about 600 MB; free some space and run it again";
const BUN_MB = 250;

/** The program that runs for us at the moment. */
let running;
/** The signal that asked us to end, and when. */
let stopSignal;
let stoppedMs = 0;

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
    running = child;
    let output = "";
    const end = (code) => {
      running = undefined;
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

/** Fails before anything is fetched when the machine lacks what the rest of the set-up takes. */
function requireTools(name) {
  const problem = name === "test-arm64" ? arm64ToolProblem() : toolProblem(name);
  if (problem !== undefined) throw new SetupError(problem);
}

function arm64ToolProblem() {
  return arm64Problem() ?? lackMessage(arm64Lacks());
}

function toolProblem(name) {
  const build =
    !process.env.MLXCEL_MLXC_PATH &&
    !existsSync(join(root, "vendor/lib", `${process.platform}-${process.arch}`, ".mlxcel-stamp"));
  const python = name === "test" && !existsSync(join(root, "test/.venv/.mlxcel-stamp"));
  const lacks = [...(build ? buildLacks() : []), ...(python ? venvLacks() : [])];
  return (build ? platformProblem() : undefined) ?? lackMessage(lacks);
}

async function ensurePackages(name) {
  const lockHash = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  const inPlace = () =>
    existsSync(bun) && existsSync(npmStamp) && readFileSync(npmStamp, "utf8") === lockHash;
  if (inPlace()) return;
  requireTools(name);
  await takeLock();
  try {
    if (!inPlace()) await installPackages(lockHash);
  } finally {
    rmSync(npmLock, { force: true });
  }
}

/**
 * Runs Bun with our input and output and resolves to its exit code. It is in a session of its own, so that ctrl-C
 * reaches it from here only: a second signal would mean "now". It ends, with all that it started, when this process is
 * killed.
 */
function runBun(args, cwd) {
  // The user's folder may hold a configuration of Bun for a program of its own.
  const options = ["--no-orphans", `--config=${join(root, "bunfig.toml")}`];
  const child = spawn(bun, [...options, ...args], { cwd, stdio: "inherit", detached: true });
  running = child;
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      running = undefined;
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Runs Bun; a failure ends this program with the same exit code. */
async function mustRunBun(args, cwd) {
  const code = await runBun(args, cwd);
  if (stopSignal !== undefined) exitBySignal();
  if (code !== 0) process.exit(code);
}

/** The folder that the user's relative paths start from: npm moves its scripts to ours. */
function userFolder() {
  return (process.cwd() === root && process.env.INIT_CWD) || process.cwd();
}

async function start(flags) {
  const folder = userFolder();
  await mustRunBun([join(root, "vendor/setup.ts"), "start", ...flags], folder);
  process.exit(await runBun([join(root, "src/main.ts"), ...flags], folder));
}

async function test(patterns) {
  await mustRunBun(["vendor/setup.ts", "test"], root);
  // Python is a client in tests of the server only.
  if (!patterns.includes("--binary")) await mustRunBun(["test/setup/setup.ts"], root);
  process.exit(await runBun(["test/run.ts", ...patterns], root));
}

async function testArm64() {
  process.exit(await runBun(["test/arm64/run.ts"], root));
}

async function build(flags) {
  process.exit(await runBun([join(root, "build.ts"), ...flags], userFolder()));
}

function exitBySignal() {
  process.exit(128 + constants.signals[stopSignal]);
}

function stop(signal) {
  // One signal to our whole process group arrives twice: npm passes on its own.
  if (Date.now() - stoppedMs < SAME_SIGNAL_MS) return;
  stoppedMs = Date.now();
  stopSignal = signal;
  if (running === undefined) exitBySignal();
  running.kill(signal);
}

/** Ends as if by SIGTERM when the npm that started us is killed: it cannot pass on every signal. */
function followNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const npm = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === npm) return;
    clearInterval(timer);
    stop("SIGTERM");
  }, PARENT_POLL_MS);
  timer.unref();
}

async function main([name, ...flags]) {
  if (Number(process.versions.node.split(".")[0]) < NODE_MAJOR) {
    throw new SetupError(`Node ${NODE_MAJOR} or newer is needed, this is ${process.versions.node}`);
  }
  const commands = { start, test, "test-arm64": testArm64, build };
  if (name === undefined || !Object.hasOwn(commands, name)) {
    throw new SetupError("usage: node vendor/bootstrap.mjs start|test|test-arm64|build [flags]");
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);
  followNpm();
  await ensurePackages(name);
  await commands[name](flags);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (stopSignal !== undefined) exitBySignal();
  const line = error.code === "ENOSPC" ? DISK_FULL : error.message;
  process.stderr.write(`mlxcel set-up: ${line}\n`);
  process.exit(1);
}
