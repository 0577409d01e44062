/** Where progress goes; stderr, so that it never mixes with what programs read. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface ProgressOptions {
  readonly stream: ProgressStream;
  /** What is counted: `texts`. */
  readonly noun: string;
  readonly total: number;
  /** Nothing is shown before so much time has passed. */
  readonly silentMs?: number;
  /** Milliseconds since some start. */
  readonly now?: () => number;
}

const SILENT_MS = 2000;
const TERMINAL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 10_000;

/** How far a long run has come: one line that is rewritten on a terminal, a new line now and then elsewhere. */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #now: () => number;
  readonly #startedAt: number;
  #shownAt: number | undefined;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#startedAt = this.#now();
  }

  update(done: number): void {
    const { stream, noun, total, silentMs = SILENT_MS } = this.#options;
    const now = this.#now();
    const elapsedMs = now - this.#startedAt;
    const intervalMs = stream.isTTY ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS;
    if (elapsedMs < silentMs) return;
    if (this.#shownAt !== undefined && now - this.#shownAt < intervalMs) return;
    this.#shownAt = now;
    const rate = (done / elapsedMs) * 1000;
    const rest = rate > 0 ? `, ${Math.ceil((total - done) / rate)} s left` : "";
    const line = `${done} of ${total} ${noun}, ${rate.toFixed(1)}/s${rest}`;
    stream.write(stream.isTTY ? `\r\u001b[2K${line}` : `${line}\n`);
  }

  /** Clears the line on a terminal. */
  end(): void {
    const { stream } = this.#options;
    if (this.#shownAt !== undefined && stream.isTTY) stream.write("\r\u001b[2K");
  }
}
