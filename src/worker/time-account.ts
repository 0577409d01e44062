/** What one thing took: all of it, and how often it happened. */
export interface TimeSpent {
  readonly name: string;
  readonly ms: number;
  readonly times: number;
}

/** Where time goes, by name. */
export class TimeAccount {
  readonly #entries = new Map<string, TimeSpent>();

  add(name: string, ms: number, times = 1): void {
    const before = this.#entries.get(name);
    this.#entries.set(name, {
      name,
      ms: (before?.ms ?? 0) + ms,
      times: (before?.times ?? 0) + times,
    });
  }

  /** Runs `body` on the account of `name`. */
  measure<T>(name: string, body: () => T): T {
    const startedAtMs = performance.now();
    try {
      return body();
    } finally {
      this.add(name, performance.now() - startedAtMs);
    }
  }

  /** The same for a body that waits, waiting included. */
  async measureAsync<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    const startedAtMs = performance.now();
    try {
      return await body();
    } finally {
      this.add(name, performance.now() - startedAtMs);
    }
  }

  get totalMs(): number {
    return this.entries().reduce((sum, { ms }) => sum + ms, 0);
  }

  entries(): readonly TimeSpent[] {
    return [...this.#entries.values()];
  }

  /** The entries since the last time they were taken. */
  take(): readonly TimeSpent[] {
    const taken = this.entries();
    this.#entries.clear();
    return taken;
  }
}
