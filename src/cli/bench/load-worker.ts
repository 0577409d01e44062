/** The thread that generates load: clients that send the next request once the last one is answered. */
import type { GroupOutcome, Load, LoadGroup, LoadOutcome } from "./load.ts";
import { NetworkFault } from "./network-fault.ts";

declare const self: Worker;

const HEADERS = {
  "content-type": "application/json",
  // compression is not what is compared
  "accept-encoding": "identity",
};
/** Keeps a server that refuses at once from being flooded. */
const PAUSE_AFTER_FAILURE_MS = 20;
const SHOWN_CHARACTERS = 200;

self.onmessage = async ({ data }: MessageEvent<Load>) => {
  self.postMessage(await generate(data));
};

/** Counts of one run that its clients share. */
class Run {
  readonly #startedAt = performance.now();
  #begun = 0;
  failures = 0;
  firstFailure: string | undefined;
  readonly #load: Load;

  constructor(load: Load) {
    this.#load = load;
  }

  get seconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  /** Whether one more request may begin. The first one always may. */
  begin(): boolean {
    const { seconds, maxRequests = Number.POSITIVE_INFINITY } = this.#load;
    if (this.#begun > 0 && (this.seconds >= seconds || this.#begun >= maxRequests)) return false;
    this.#begun++;
    return true;
  }

  fail(reason: string): void {
    this.failures++;
    this.firstFailure ??= reason;
  }
}

async function generate(load: Load): Promise<LoadOutcome> {
  const run = new Run(load);
  const groups = await Promise.all(load.groups.map((group) => runGroup(group, run)));
  const { seconds, failures, firstFailure } = run;
  return { seconds, groups, failures, firstFailure };
}

async function runGroup(group: LoadGroup, run: Run): Promise<GroupOutcome> {
  const latenciesMs: number[] = [];
  let texts = 0;
  let tokens = 0;
  let next = 0;
  const client = async () => {
    while (run.begin()) {
      const request = group.requests[next++ % group.requests.length];
      if (!request) throw new Error("a scenario has no requests");
      const startedAt = performance.now();
      const failure = await send(group.url, request.body);
      if (failure !== undefined) {
        run.fail(failure);
        await Bun.sleep(PAUSE_AFTER_FAILURE_MS);
        continue;
      }
      latenciesMs.push(performance.now() - startedAt);
      texts += request.texts;
      tokens += request.tokens;
    }
  };
  await Promise.all(Array.from({ length: group.clients }, client));
  return { latenciesMs, texts, tokens };
}

/** Sends one request and reads the whole answer. What went wrong, in one line. */
async function send(url: string, body: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { method: "POST", headers: HEADERS, body });
    const answer = await response.arrayBuffer();
    if (response.status === 200) return undefined;
    const text = new TextDecoder().decode(answer).replace(/\s+/g, " ");
    return `${response.status}: ${text.slice(0, SHOWN_CHARACTERS)}`;
  } catch (error) {
    return new NetworkFault("a request", url, error).message;
  }
}
