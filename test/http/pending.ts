/** Requests that a test leaves running, waiting, or abandoned. */
import { type Server, until } from "../server.ts";

export interface Pending {
  readonly answer: Promise<Response>;
  /** Resolves once the answer is there or the request has failed. */
  readonly ended: Promise<void>;
  abort(): Promise<void>;
}

export function send(server: Server, path: string, body: unknown): Pending {
  const controller = new AbortController();
  const answer = server.fetch(path, {
    method: "POST",
    body: JSON.stringify(body),
    signal: controller.signal,
  });
  const ended = answer.then(
    () => {},
    () => {},
  );
  return { answer, ended, abort: () => (controller.abort(), ended) };
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

/** Keeps a worker with room for one waiting request busy, and puts a request into that room. */
export async function fillQueue(
  server: Server,
  { model, path, endless, small }: Filling,
): Promise<{ readonly running: Pending; readonly waiting: Pending }> {
  const running = send(server, path, endless);
  for (;;) {
    const waiting = send(server, path, small);
    const answered = waiting.ended.then(() => "answered" as const);
    const settled = until(async () => {
      const first = await waitingCount(server, model);
      await Bun.sleep(100);
      return first === 1 && (await waitingCount(server, model)) === 1;
    }, "nothing ever waits");
    // An answer means that the worker was not busy yet.
    if ((await Promise.race([settled, answered])) !== "answered") return { running, waiting };
  }
}
