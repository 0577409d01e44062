import { readFileSync } from "node:fs";

/** A server under test. */
export interface Target {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** From starting the process to its first answered embedding. */
  readonly startupMs: number;
  stop(): Promise<void>;
}

const STARTUP_LIMIT_MS = 120_000;

export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** Starts a server and waits for its first embedding. */
export async function startTarget(name: string, command: string[], port: number): Promise<Target> {
  const startedAt = performance.now();
  const process = Bun.spawn(command, { stdout: "ignore", stderr: "inherit" });
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (process.exitCode !== null)
      throw new Error(`${name} ended with exit code ${process.exitCode}`);
    if (performance.now() - startedAt > STARTUP_LIMIT_MS) throw new Error(`${name} did not start`);
    await Bun.sleep(5);
  }
  const startupMs = performance.now() - startedAt;
  return {
    name,
    url,
    pid: process.pid,
    startupMs,
    stop: async () => {
      process.kill("SIGTERM");
      await process.exited;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await embed(url, "ready?")).length === 1;
  } catch (error) {
    // not listening yet, or still loading
    if (error instanceof Error) return false;
    throw error;
  }
}

interface EmbeddingsAnswer {
  readonly data: readonly { readonly embedding: readonly number[] }[];
}

export async function embed(url: string, input: string | string[]): Promise<readonly number[][]> {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const answer: EmbeddingsAnswer = JSON.parse(await response.text());
  return answer.data.map((entry) => [...entry.embedding]);
}

/** Resident memory of the process in MB (Linux). */
export function residentMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kb) / 1024);
}
