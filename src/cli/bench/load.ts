/** What the thread that generates load is told and what it tells. */
import { loadWorkerUrl } from "../../entries.ts";

interface LoadRequest {
  readonly body: string;
  readonly texts: number;
  readonly tokens: number;
}

/** Clients that go through the same requests in turn. */
export interface LoadGroup {
  readonly url: string;
  readonly clients: number;
  readonly requests: readonly LoadRequest[];
}

export interface Load {
  readonly groups: readonly LoadGroup[];
  /** No request is begun after so long, nor after so many; those that run are waited for and counted. */
  readonly seconds: number;
  readonly maxRequests?: number;
}

/** The requests of one group that were answered with status 200. */
export interface GroupOutcome {
  /** In the order of the answers. */
  readonly latenciesMs: readonly number[];
  readonly texts: number;
  readonly tokens: number;
}

export interface LoadOutcome {
  /** From the first request to the last answer. */
  readonly seconds: number;
  readonly groups: readonly GroupOutcome[];
  /** Requests with another status, or without an answer. */
  readonly failures: number;
  readonly firstFailure?: string | undefined;
}

/** A thread of its own, so that generating load waits for nothing else in this process. */
export class LoadGenerator implements Disposable {
  readonly #worker = new Worker(loadWorkerUrl);

  /** Puts a load on a server; one at a time. */
  run(load: Load): Promise<LoadOutcome> {
    return new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }: MessageEvent<LoadOutcome>) => resolve(data);
      this.#worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(`the load generator failed: ${event.message}`));
      };
      this.#worker.postMessage(load);
    });
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }
}
