/** Runs the real program in its own process, as a user would start it. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 10;

export type Headers = Readonly<Record<string, string>>;
export type Environment = Readonly<Record<string, string>>;

interface StartOptions {
  readonly env?: Environment;
  /** Talk to this unix socket instead of to the port. */
  readonly unix?: string;
  /** PEM of the certificate to trust. */
  readonly certificate?: string;
  /** This executable instead of the sources; `env` is then its whole environment. */
  readonly executable?: string;
  /** false: return as soon as it listens, maybe before the model is loaded. */
  readonly waitUntilReady?: boolean;
}

export interface Server extends AsyncDisposable {
  /** Without a slash at the end. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  fetch(path: string, init?: BunFetchRequestInit): Promise<Response>;
  get(path: string, headers?: Headers): Promise<Response>;
  /** A string or bytes are sent as they are, everything else as JSON. */
  post(path: string, body: unknown, headers?: Headers): Promise<Response>;
  /** All that the process has printed so far. */
  stdout(): string;
  stderr(): string;
  /** Sends a signal and waits for the end. Returns the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number>;
}

export interface Exit {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Child = Bun.Subprocess<"ignore", "pipe", "pipe">;

/**
 * `mlxcel serve` with these flags on a free port; resolves once `/health` answers 200. The caller ends it, best with
 * `await using`.
 */
export async function startServer(
  flags: readonly string[],
  options: StartOptions = {},
): Promise<Server> {
  const port = flags[flags.indexOf("--port") + 1];
  const ownPort = flags.includes("--port") ? port : undefined;
  const child = spawn(["serve", "--port", "0", ...flags], options);
  const printed = { stdout: transcript(child.stdout), stderr: transcript(child.stderr) };
  const output = () => printed.stdout.text + printed.stderr.text;
  const check = () => {
    if (child.exitCode === null) return;
    throw new Error(`the server exited with ${child.exitCode} while it started:\n${output()}`);
  };
  try {
    const announced = options.unix || ownPort ? undefined : await announcedUrl(output, check);
    const url = announced ?? (ownPort ? `http://127.0.0.1:${ownPort}` : "http://localhost");
    const server = connectedTo(url, child, options, printed);
    if (options.waitUntilReady !== false) {
      await until(async () => (check(), await isReady(server)), "the server never got ready");
    }
    return server;
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** Runs the program to its end. */
export async function run(args: readonly string[], env?: Environment): Promise<Exit> {
  const child = spawn(args, env ? { env } : {});
  const stdout = transcript(child.stdout);
  const stderr = transcript(child.stderr);
  const exitCode = await exitOf(child, STOP_TIMEOUT_MS);
  await Promise.all([stdout.ended, stderr.ended]);
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

/** Polls until the condition holds; throws `otherwise` when it does not in time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  otherwise: string,
  timeoutMs = START_TIMEOUT_MS,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(otherwise);
    await Bun.sleep(POLL_MS);
  }
}

/** Resident memory of a process. */
export function residentMiB(pid: number): number {
  const { stdout } = Bun.spawnSync(["ps", "-o", "rss=", "-p", String(pid)]);
  return Number(stdout.toString()) / 1024;
}

/** Time that all threads of a process have computed. */
export function cpuSeconds(pid: number): number {
  if (process.platform === "linux") {
    // Here ps rounds to whole seconds.
    const [, afterName = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(/\) (?!.*\) )/s);
    const [user, system] = afterName.split(" ").slice(11, 13);
    return (Number(user) + Number(system)) / 100;
  }
  const { stdout } = Bun.spawnSync(["ps", "-o", "time=", "-p", String(pid)]);
  return stdout
    .toString()
    .split(":")
    .reduce((seconds, part) => 60 * seconds + Number(part), 0);
}

function spawn(args: readonly string[], { env = {}, executable }: StartOptions): Child {
  const command = executable ? [executable] : [process.execPath, "src/main.ts"];
  return Bun.spawn([...command, ...args], {
    cwd: executable ? dirname(executable) : ROOT,
    // Threads of OpenBLAS that wait for a core busy with something else make tiny models 100 times slower.
    env: executable ? env : { OPENBLAS_NUM_THREADS: "1", ...cleanEnvironment(), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Settings of the person who runs the tests must not reach the server, nor does a test reach the public hub. */
function cleanEnvironment(): Record<string, string | undefined> {
  const own = /^(MLXCEL_(?!MLXC_PATH)|LLAMA_|HF_)/;
  const others = Object.entries(process.env).filter(([name]) => !own.test(name));
  return { ...Object.fromEntries(others), HF_HUB_OFFLINE: "1" };
}

interface Transcript {
  text: string;
  ended: Promise<void>;
}

function transcript(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Transcript {
  const result: Transcript = { text: "", ended: Promise.resolve() };
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) result.text += decoder.decode(bytes, { stream: true });
  };
  result.ended = read();
  return result;
}

async function announcedUrl(output: () => string, check: () => void): Promise<string> {
  const find = () => /https?:\/\/127\.0\.0\.1:\d+/.exec(output())?.[0];
  await until(() => (check(), find() !== undefined), "the server never told its URL");
  return find() ?? "";
}

async function isReady(server: Server): Promise<boolean> {
  try {
    const health = await server.get("/health");
    await health.text();
    return health.ok;
  } catch {
    return false; // Not listening yet.
  }
}

async function exitOf(child: Child, timeoutMs: number): Promise<number> {
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  await child.exited;
  clearTimeout(timer);
  return child.exitCode ?? -1; // -1: ended by a signal.
}

function connectedTo(
  url: string,
  child: Child,
  { unix, certificate }: StartOptions,
  printed: { stdout: Transcript; stderr: Transcript },
): Server {
  const transport: BunFetchRequestInit = {
    ...(unix ? { unix } : {}),
    ...(certificate ? { tls: { ca: certificate } } : {}),
  };
  const send = (path: string, init: BunFetchRequestInit = {}) =>
    fetch(url + path, { ...transport, ...init });
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    const exitCode = await exitOf(child, STOP_TIMEOUT_MS);
    await Promise.all([printed.stdout.ended, printed.stderr.ended]);
    return exitCode;
  };
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid,
    fetch: send,
    get: (path, headers = {}) => send(path, { headers }),
    post: (path, body, headers = {}) =>
      send(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    stdout: () => printed.stdout.text,
    stderr: () => printed.stderr.text,
    stop,
    async [Symbol.asyncDispose]() {
      await stop("SIGKILL");
    },
  };
}
