/** Requests that a test leaves running, waiting, or abandoned. */
import { cpuSeconds, type Server } from "../server.ts";

export interface Pending {
  readonly answer: Promise<Response>;
  /** Resolves once the answer is there or the request has failed. */
  readonly ended: Promise<void>;
  abort(): Promise<void>;
}

const unanswered = new Set<Pending>();

/** For `afterEach`: a test that fails leaves its server free for the next one. */
export async function abortPending(): Promise<void> {
  await Promise.all([...unanswered].map((pending) => pending.abort()));
}

export function send(server: Server, path: string, body: unknown): Pending {
  const controller = new AbortController();
  const answer = server.fetch(path, {
    method: "POST",
    body: JSON.stringify(body),
    signal: controller.signal,
  });
  const end = () => void unanswered.delete(pending);
  const ended = answer.then(end, end);
  const pending = { answer, ended, abort: () => (controller.abort(), ended) };
  unanswered.add(pending);
  return pending;
}

/** Requests that wait for the models of a server started with `--metrics`, by the id of the model. */
async function waitingCount(server: Server, model: string): Promise<number> {
  const metrics = await (await server.get("/metrics")).text();
  const start = `mlxcel_queue_waiting{model="${model}"`;
  const line = metrics.split("\n").find((text) => text.startsWith(start));
  return Number(line?.split(" ").at(-1));
}

interface Filling {
  readonly model: string;
  readonly path: string;
  /** More work than the test waits for. */
  readonly endless: unknown;
  readonly small: unknown;
}

/** Below the timeout of a test. */
const FILL_TIMEOUT_MS = 50_000;
/** Far more than a small request takes. */
const RUNNING_CPU_SECONDS = 0.5;

/**
 * Whether the request waits behind the endless one. If it ran, with the endless one behind it, it would be answered
 * before the server has computed for that long, however busy the machine is.
 */
async function isBehind(server: Server, model: string, { ended }: Pending): Promise<boolean> {
  let answered = false;
  void ended.then(() => (answered = true));
  let since = cpuSeconds(server.pid);
  while (!answered) {
    const oneWaits = (await waitingCount(server, model)) === 1;
    if (!oneWaits) since = cpuSeconds(server.pid);
    if (cpuSeconds(server.pid) - since > RUNNING_CPU_SECONDS) return true;
    await Bun.sleep(20);
  }
  return false;
}

/** Keeps a worker with room for one waiting request busy, and puts a request into that room. */
export async function fillQueue(
  server: Server,
  { model, path, endless, small }: Filling,
): Promise<{ readonly running: Pending; readonly waiting: Pending }> {
  const deadline = Date.now() + FILL_TIMEOUT_MS;
  let running = send(server, path, endless);
  while (Date.now() < deadline) {
    const waiting = send(server, path, small);
    if (await isBehind(server, model, waiting)) return { running, waiting };
    // A small request may have held the one place when the endless one came.
    if (!unanswered.has(running)) running = send(server, path, endless);
  }
  throw new Error("the queue is never full");
}
