/** `mlxcel serve` in a process of its own, as a user would start it. */
import { basename } from "node:path";
import { ownCommand } from "../../entries.ts";
import type { Environment } from "../../native/environment.ts";
import { freePort, startServer, type StartedServer } from "./started-server.ts";

/** Load tests need more than the default of 8. */
const QUEUE_DEPTH = 512;
const POLL_MS = 5;

interface OwnServerOptions {
  /** Directories. */
  readonly model: string;
  readonly reranker?: string | undefined;
  readonly cpuPrecision?: "f32" | "bf16" | undefined;
  readonly env: Environment;
}

/** @throws Error one line, when it does not start */
export async function startOwnServer(options: OwnServerOptions): Promise<StartedServer> {
  const { model, reranker, cpuPrecision, env } = options;
  const port = freePort();
  const command = [
    ...[...ownCommand, "serve", "--port", String(port)],
    ...["--embedding-model", model, "--embedding-queue-depth", String(QUEUE_DEPTH)],
    ...(reranker === undefined ? [] : ["--reranker-model", reranker]),
    ...(cpuPrecision === undefined ? [] : ["--cpu-precision", cpuPrecision]),
    ...["--log-level", "error"],
  ];
  // keys would lock the load out
  const open = Object.entries(env).filter(([name]) => !/API_KEY/.test(name));
  const server = await startServer({
    name: cpuPrecision === undefined ? "mlxcel" : `mlxcel ${cpuPrecision}`,
    command,
    port,
    env: Object.fromEntries(open),
  });
  // A vector came back, but the reranker may still be loading.
  while ((await fetch(`${server.target.url}/health`)).status === 503) await Bun.sleep(POLL_MS);
  const names = {
    model: basename(model),
    rerankModel: reranker === undefined ? undefined : basename(reranker),
    reducedPrecision: cpuPrecision === "bf16",
  };
  return { ...server, target: { ...server.target, ...names } };
}
