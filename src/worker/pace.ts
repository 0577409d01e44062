/** A smaller batch does not fill the machine: its rate says nothing about a big one's. */
const TELLING_TOKENS = 128;

/** How many tokens the model gets through in a given time, learnt from the batches that it ran lately. */
export class Pace {
  #tokensPerMs: number | undefined;

  /** Weight of the newest batch in the running mean. */
  static readonly #NEWEST = 0.3;

  /** `elapsedMs`: time that the batch alone took. */
  record(tokens: number, elapsedMs: number): void {
    if (tokens < TELLING_TOKENS || elapsedMs <= 0) return;
    const rate = tokens / elapsedMs;
    this.#tokensPerMs =
      this.#tokensPerMs === undefined
        ? rate
        : this.#tokensPerMs + Pace.#NEWEST * (rate - this.#tokensPerMs);
  }

  /** undefined until a batch has run. */
  tokensWithin(ms: number): number | undefined {
    return this.#tokensPerMs === undefined ? undefined : Math.floor(this.#tokensPerMs * ms);
  }
}
