/** Servers that are started for a comparison and ended after it. */
import type { Environment } from "../../native/environment.ts";
import { embed, type Target } from "./target.ts";

const POLL_MS = 5;
const STARTUP_LIMIT_MS = 120_000;
const STOP_LIMIT_MS = 10_000;

/** A server that was started here; disposing of it ends it. */
export interface StartedServer extends AsyncDisposable {
  readonly target: Target;
}

interface ServerCommand {
  readonly name: string;
  readonly command: readonly string[];
  readonly port: number;
  readonly env: Environment;
  /** As in `Target`. */
  readonly model?: string;
  readonly rerankModel?: string;
}

/**
 * Starts a server and waits until it answers a text with a vector.
 * @throws Error one line: the last that it said, when it ends or takes too long
 */
export async function startServer(options: ServerCommand): Promise<StartedServer> {
  const { name, command, port, env, model, rerankModel } = options;
  const startedAt = performance.now();
  const child = Bun.spawn([...command], {
    env: forServers(env),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = new LastLine(child.stderr);
  const stop = async () => {
    child.kill();
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
    await child.exited;
    clearTimeout(timer);
  };
  const url = `http://127.0.0.1:${port}`;
  const target: Target = { name, url, model, rerankModel, pids: [child.pid] };
  while (!(await answers(target))) {
    const late = performance.now() - startedAt > STARTUP_LIMIT_MS;
    if (child.exitCode === null && child.signalCode === null && !late) {
      await Bun.sleep(POLL_MS);
      continue;
    }
    await stop();
    await said.ended;
    const why = late ? `did not answer in ${STARTUP_LIMIT_MS / 1000} s` : "ended while it started";
    throw new Error(`${name} ${why}${said.text === "" ? "" : `: ${said.text}`}`);
  }
  const startupMs = performance.now() - startedAt;
  return { target: { ...target, startupMs }, [Symbol.asyncDispose]: stop };
}

/** Settings of OpenBLAS for tests make it slow. */
function forServers(env: Environment): Record<string, string | undefined> {
  const { OPENBLAS_CORETYPE: _core, OPENBLAS_L2_SIZE: _size, ...others } = env;
  return others;
}

export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

async function answers(target: Target): Promise<boolean> {
  try {
    return (await embed(target, ["ready?"])).length === 1;
  } catch {
    return false; // not listening yet, or still loading
  }
}

/** Keeps the last line that a process writes, for the case that it fails. */
class LastLine {
  text = "";
  readonly ended: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.ended = this.#read(stream);
  }

  async #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of stream) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      this.text = lines.findLast((line) => line.trim() !== "")?.trim() ?? this.text;
    }
    if (rest.trim() !== "") this.text = rest.trim();
  }
}
