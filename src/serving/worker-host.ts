import { Failure, type FailureReason } from "../worker/failure.ts";
import { packedBuffers } from "../worker/items.ts";
import type { Job, ModelInfo, Result, ResultOf } from "../worker/job.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "../worker/protocol.ts";
import type { TimeAccount } from "../worker/time-account.ts";
import type { Logger } from "./log.ts";
import type { ModelKind, Provider, ProviderState } from "./provider.ts";

interface WorkerHostOptions {
  readonly id: string;
  readonly names: readonly string[];
  readonly worker: WorkerSettings;
  /** Requests that may wait; one more is refused. */
  readonly queueDepth: number;
  readonly requestTimeoutMs: number;
  readonly logger: Logger;
  /** The worker's entry module. */
  readonly workerUrl: URL;
  /** Takes what requests wait, and what the worker measures where its settings ask for that. */
  readonly profile?: TimeAccount | undefined;
}

/** A job that the worker holds, and how to answer its caller. */
interface PendingJob {
  readonly abort: Int32Array<SharedArrayBuffer>;
  readonly admittedAtMs: number;
  started: boolean;
  resolve(result: Result): void;
  reject(failure: Failure): void;
}

const FIRST_RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 30_000;

/**
 * Owns one model worker: loads it, admits jobs up to the queue depth, times them out, and restarts the thread when it
 * dies. Every admitted job is answered: with its result, or with a Failure that says why there is none.
 */
export class WorkerHost implements Provider {
  readonly kind: ModelKind;
  readonly id: string;
  readonly names: readonly string[];
  state: ProviderState = "loading";
  info: ModelInfo | undefined;
  created = 0;
  waiting = 0;
  readonly queueDepth: number;

  #worker: Worker | undefined;
  readonly #pending = new Map<number, PendingJob>();
  #nextJobId = 1;
  #restartDelayMs = FIRST_RESTART_DELAY_MS;
  #restartTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** The load that `load` waits for; undefined once it has ended: later ones are restarts. */
  #firstLoad: PromiseWithResolvers<ModelInfo> | undefined;
  readonly #options: WorkerHostOptions;

  constructor(options: WorkerHostOptions) {
    this.#options = options;
    this.id = options.id;
    this.kind = options.worker.kind;
    this.queueDepth = options.queueDepth;
    this.names = options.names;
  }

  /** Loads the model. Rejects with the reason, in one line, when it can't be loaded. */
  load(): Promise<ModelInfo> {
    this.#firstLoad = Promise.withResolvers<ModelInfo>();
    this.#spawn();
    return this.#firstLoad.promise;
  }

  submit<J extends Job>(job: J, signal: AbortSignal): Promise<ResultOf<J>>;
  submit(job: Job, signal: AbortSignal): Promise<Result> {
    if (this.state !== "ready" || !this.#worker) return Promise.reject(this.#notReady());
    if (signal.aborted) return Promise.reject(cancelled());
    if (this.waiting >= this.queueDepth) return Promise.reject(this.#queueFull());
    return this.#admit(this.#worker, job, signal);
  }

  /** Ends the worker; jobs that it still holds fail. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#restartTimer);
    this.#worker?.terminate();
    this.#failAll("unavailable", "the server is shutting down");
  }

  #admit(worker: Worker, job: Job, signal: AbortSignal): Promise<Result> {
    const id = this.#nextJobId++;
    const abort = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const timeoutMs = this.#options.requestTimeoutMs;
    const timer = setTimeout(() => this.#drop(id, timedOut(timeoutMs)), timerDelay(timeoutMs));
    const onAbort = () => this.#drop(id, cancelled());
    signal.addEventListener("abort", onAbort, { once: true });
    const release = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    this.waiting++;
    this.#pending.set(id, {
      abort,
      admittedAtMs: performance.now(),
      started: false,
      resolve: (result) => (release(), resolve(result)),
      reject: (failure) => (release(), reject(failure)),
    });
    this.#send(worker, { type: "job", id, job, abort: abort.buffer });
    return promise;
  }

  #send(worker: Worker, message: ToWorker): void {
    const packed =
      message.type === "job" && "items" in message.job && "offsets" in message.job.items
        ? packedBuffers(message.job.items)
        : [];
    worker.postMessage(message, packed);
  }

  /** The caller stops waiting: the worker skips what it has not run, and the place in the queue is free at once. */
  #drop(id: number, failure: Failure): void {
    const job = this.#settle(id);
    if (!job) return;
    Atomics.store(job.abort, 0, 1);
    job.reject(failure);
  }

  /** Takes a job off the books; undefined when it was answered before. */
  #settle(id: number): PendingJob | undefined {
    const job = this.#pending.get(id);
    if (!job) return undefined;
    this.#markStarted(job);
    this.#pending.delete(id);
    return job;
  }

  #markStarted(job: PendingJob): void {
    if (job.started) return;
    this.waiting--;
    job.started = true;
    this.#options.profile?.add("wait", performance.now() - job.admittedAtMs);
  }

  #spawn(): void {
    this.state = "loading";
    const worker = new Worker(this.#options.workerUrl, { name: this.id });
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#onError(event.message);
    };
    worker.addEventListener("close", () => this.#onClose(worker));
    this.#send(worker, { type: "load", settings: this.#options.worker });
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case "loaded":
        return this.#onLoaded(message.info);
      case "load-failed":
        return this.#onLoadFailed(message.message);
      case "started": {
        const job = this.#pending.get(message.id);
        if (job) this.#markStarted(job);
        return;
      }
      case "spent":
        for (const { name, ms, times } of message.times) {
          this.#options.profile?.add(name, ms, times);
        }
        return;
      case "result":
        return this.#settle(message.id)?.resolve(message.result);
      case "failed":
        return this.#settle(message.id)?.reject(Failure.fromWire(message.failure));
    }
  }

  #onLoaded(info: ModelInfo): void {
    this.info = info;
    this.state = "ready";
    this.created = Math.floor(Date.now() / 1000);
    this.#restartDelayMs = FIRST_RESTART_DELAY_MS;
    this.#firstLoad?.resolve(info);
    this.#firstLoad = undefined;
  }

  #onLoadFailed(reason: string): void {
    if (this.#firstLoad) this.#failFirstLoad(this.#firstLoad, reason);
    else this.#options.logger.error("loading failed", { model: this.id, reason });
    this.#worker?.terminate();
  }

  /** An error that nobody caught ends the worker: "close" follows. */
  #onError(reason: string): void {
    if (this.#firstLoad)
      this.#failFirstLoad(this.#firstLoad, `loading ${this.id} failed: ${reason}`);
    else this.#options.logger.error("model worker failed", { model: this.id, reason });
  }

  #onClose(worker: Worker): void {
    if (this.#closed || worker !== this.#worker) return;
    if (this.#firstLoad) {
      this.#failFirstLoad(this.#firstLoad, `the worker of ${this.id} stopped while it was loading`);
      return;
    }
    this.#worker = undefined;
    this.state = "loading";
    const reason = "its worker stopped unexpectedly and is being restarted; please retry";
    this.#failAll("internal", `${this.id}: ${reason}`);
    this.#restartTimer = setTimeout(() => this.#spawn(), this.#restartDelayMs);
    this.#restartDelayMs = Math.min(2 * this.#restartDelayMs, MAX_RESTART_DELAY_MS);
  }

  /** A model that never loaded is for the caller of `load` to report; there is nothing to restart. */
  #failFirstLoad(load: PromiseWithResolvers<ModelInfo>, reason: string): void {
    this.#closed = true;
    this.state = "failed";
    load.reject(new Error(reason));
  }

  #failAll(reason: FailureReason, message: string): void {
    for (const id of [...this.#pending.keys()]) {
      this.#settle(id)?.reject(new Failure(reason, message));
    }
  }

  #notReady(): Failure {
    return this.state === "failed"
      ? new Failure("internal", `model ${this.id} failed to load`)
      : new Failure("unavailable", "Loading model");
  }

  #queueFull(): Failure {
    const waiting = this.queueDepth === 1 ? "1 request waits" : `${this.queueDepth} requests wait`;
    const message =
      `the queue of ${this.id} is full (${waiting}); ` +
      `retry later, or start with a larger --embedding-queue-depth`;
    return new Failure("busy", message);
  }
}

function timedOut(timeoutMs: number): Failure {
  const message =
    `no answer within ${timeoutMs / 1000} s; send fewer inputs, ` +
    `or start with a larger --embedding-request-timeout-secs`;
  return new Failure("timeout", message);
}

function cancelled(): Failure {
  return new Failure("cancelled", "the client closed the connection");
}

/** A longer delay would overflow the timer and fire at once. */
const MAX_TIMER_DELAY_MS = 2 ** 31 - 1;

function timerDelay(timeoutMs: number): number {
  return Math.min(timeoutMs, MAX_TIMER_DELAY_MS);
}
