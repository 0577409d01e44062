/** Requests that a test leaves running, waiting, or abandoned. */
import { cpuSeconds, type Server } from "../server.ts";

interface Pending {
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

export interface Load {
  /** Where the endless and the small request go. */
  readonly path: string;
  /** More work than the test waits for: only cancelling ends it. */
  readonly endless: unknown;
  readonly small: unknown;
}

/** Below the timeout of a test. */
const DEADLINE_MS = 50_000;
/** Far more than a small request takes. */
const BUSY_CPU_SECONDS = 0.5;

/** Keeps a model busy: batches of the request run one after the other until it is aborted. */
export async function keepBusy(server: Server, { path, endless }: Load): Promise<Pending> {
  const running = send(server, path, endless);
  const before = cpuSeconds(server.pid);
  while (unanswered.has(running) && cpuSeconds(server.pid) - before < BUSY_CPU_SECONDS) {
    await Bun.sleep(20);
  }
  if (!unanswered.has(running)) throw new Error("the endless request has ended");
  return running;
}

/**
 * The refusal of a request that comes while others hold every place of a queue of 1. A place is held only until the
 * batch that runs has ended, so a few small ones are sent with it, again and again, until that happens.
 */
export async function refusedInCrowd(
  server: Server,
  { path, small }: Load,
  request: () => Promise<Response>,
): Promise<Response> {
  const deadline = Date.now() + DEADLINE_MS;
  while (Date.now() < deadline) {
    const crowd = [1, 2, 3].map(() => send(server, path, small));
    const response = await request();
    for (const { answer } of crowd) {
      const { status } = await answer;
      if (status !== 200 && status !== 503) throw new Error(`one of the crowd got ${status}`);
    }
    if (response.status !== 200) return response;
    await response.arrayBuffer();
  }
  throw new Error("the queue is never full");
}

/** Waits until the server computes nothing any more. */
export async function untilIdle(server: Server): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (Date.now() < deadline) {
    const before = cpuSeconds(server.pid);
    await Bun.sleep(400);
    if (cpuSeconds(server.pid) - before < 0.1) return;
  }
  throw new Error("the server still computes");
}
