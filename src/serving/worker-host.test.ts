import { afterEach, expect, test } from "bun:test";
import { Failure, type FailureReason } from "../worker/failure.ts";
import type { EmbedJob } from "../worker/job.ts";
import type { Logger } from "./log.ts";
import { WorkerHost } from "./worker-host.ts";

const WORKER_URL = new URL("../../test/workers/scripted-worker.ts", import.meta.url);
const never = new AbortController().signal;
const hosts: WorkerHost[] = [];

afterEach(() => {
  for (const host of hosts.splice(0)) host.close();
  logged.length = 0;
});

const logged: string[] = [];
const logger: Logger = {
  debug: (message) => void logged.push(message),
  info: (message) => void logged.push(message),
  warn: (message) => void logged.push(message),
  error: (message) => void logged.push(message),
};

function newHost(
  limits: { queueDepth?: number; timeoutMs?: number; script?: string } = {},
): WorkerHost {
  const host = new WorkerHost({
    id: "m",
    names: ["m"],
    worker: {
      kind: "embedding",
      directory: limits.script ?? "",
      device: "cpu",
      cacheLimitBytes: 0,
    },
    queueDepth: limits.queueDepth ?? 8,
    requestTimeoutMs: limits.timeoutMs ?? 60_000,
    logger,
    workerUrl: WORKER_URL,
  });
  hosts.push(host);
  return host;
}

function job(script: string): EmbedJob {
  const field = { name: "input", isList: false };
  return { kind: "embed", items: [{ text: script }], field, truncate: true };
}

async function reasonOf(answer: Promise<unknown>): Promise<FailureReason | "answered"> {
  try {
    await answer;
    return "answered";
  } catch (error) {
    if (error instanceof Failure) return error.reason;
    throw error;
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(2);
}

test("a job that can't wait is refused at once and whole, and jobs in a batch do not count as waiting", async () => {
  const host = newHost({ queueDepth: 2 });
  await host.load();
  const running = host.submit(job("never-finish"), never);
  await until(() => host.waiting === 0);
  const waiting = [host.submit(job("never-start"), never), host.submit(job("never-start"), never)];
  expect(host.waiting).toBe(2);
  expect(await reasonOf(host.submit(job("ok"), never))).toBe("busy");
  host.close();
  expect(await Promise.all([running, ...waiting].map(reasonOf))).toEqual(
    Array(3).fill("unavailable"),
  );
});

test.each([
  [1, "the queue of m is full (1 request waits);"],
  [2, "the queue of m is full (2 requests wait);"],
])("with a queue of %d, the refusal says %s", async (queueDepth, words) => {
  const host = newHost({ queueDepth });
  await host.load();
  const waiting = Array.from({ length: queueDepth }, () => host.submit(job("never-start"), never));
  await expect(host.submit(job("ok"), never)).rejects.toThrow(words);
  host.close();
  await Promise.allSettled(waiting);
});

test("a client that leaves frees its place in the queue at once", async () => {
  const host = newHost({ queueDepth: 1 });
  await host.load();
  const client = new AbortController();
  const gone = host.submit(job("never-start"), client.signal);
  client.abort();
  expect(await reasonOf(gone)).toBe("cancelled");
  expect(host.waiting).toBe(0);
  expect(await reasonOf(host.submit(job("ok"), never))).toBe("answered");
});

test("no answer within the timeout is a timeout, and the place is free again", async () => {
  const host = newHost({ queueDepth: 1, timeoutMs: 20 });
  await host.load();
  expect(await reasonOf(host.submit(job("never-start"), never))).toBe("timeout");
  expect(await reasonOf(host.submit(job("ok"), never))).toBe("answered");
});

test("a timeout beyond the range of a timer does not fire at once", async () => {
  const host = newHost({ timeoutMs: 1e12 });
  await host.load();
  expect(await reasonOf(host.submit(job("ok"), never))).toBe("answered");
});

test("a worker that dies answers what it held with an internal failure and is restarted", async () => {
  const host = newHost();
  await host.load();
  const held = host.submit(job("never-finish"), never);
  const killer = host.submit(job("die"), never);
  expect(await Promise.all([held, killer].map(reasonOf))).toEqual(["internal", "internal"]);
  expect(host.waiting).toBe(0);
  await until(() => host.state === "ready");
  expect(await reasonOf(host.submit(job("ok"), never))).toBe("answered");
});

test("requests while the model loads are told so", async () => {
  const host = newHost();
  const loaded = host.load();
  expect(await reasonOf(host.submit(job("ok"), never))).toBe("unavailable");
  await loaded;
});

test("a model that can't be loaded rejects with the reason, and logs nothing beside it", async () => {
  await expect(newHost({ script: "refuse" }).load()).rejects.toThrow("config.json: no such file");
  await expect(newHost({ script: "die-loading" }).load()).rejects.toThrow("out of memory");
  expect(logged).toEqual([]);
});
