/** What is counted of answered requests. */
interface Answered {
  readonly requests: number;
  readonly items: number;
  readonly tokens: number;
}

const NOTHING: Answered = { requests: 0, items: 0, tokens: 0 };

/** Seconds that a mean is taken over: long enough to be calm, short enough to follow. */
const WINDOW_SECONDS = 10;

/** Means over the last seconds, in constant memory. */
export class Throughput {
  /** Counts by second, in a ring: entry s % length belongs to second s. */
  readonly #seconds = new Array<{ second: number; counts: Answered }>(WINDOW_SECONDS);
  readonly #nowMs: () => number;

  /** @param nowMs a clock, for tests */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  record(items: number, tokens: number): void {
    const second = Math.floor(this.#nowMs() / 1000);
    const place = second % WINDOW_SECONDS;
    const entry = this.#seconds[place];
    const before = entry?.second === second ? entry.counts : NOTHING;
    const counts = sum(before, { requests: 1, items, tokens });
    this.#seconds[place] = { second, counts };
  }

  perSecond(): Answered {
    const now = Math.floor(this.#nowMs() / 1000);
    const { requests, items, tokens } = this.#seconds
      .filter((entry) => entry && now - entry.second < WINDOW_SECONDS)
      .reduce((total, { counts }) => sum(total, counts), NOTHING);
    return {
      requests: requests / WINDOW_SECONDS,
      items: items / WINDOW_SECONDS,
      tokens: tokens / WINDOW_SECONDS,
    };
  }
}

function sum(a: Answered, b: Answered): Answered {
  return {
    requests: a.requests + b.requests,
    items: a.items + b.items,
    tokens: a.tokens + b.tokens,
  };
}
