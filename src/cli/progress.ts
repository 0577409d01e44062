import { byteText } from "../hub/byte-text.ts";

/** Where progress goes; stderr, so that it never mixes with what programs read. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  /** Width of a terminal. */
  readonly columns?: number;
  write(text: string): unknown;
}

/** How what is counted is written. */
interface Unit {
  readonly amount: (done: number, total: number) => string;
  readonly rate: (perSecond: number) => string;
}

interface ProgressOptions {
  readonly stream: ProgressStream;
  readonly unit: Unit;
  readonly total: number;
  /** Done by an earlier run: it does not count for the speed. */
  readonly alreadyDone?: number;
  /** Nothing is shown before so much time has passed. */
  readonly silentMs?: number;
  /** Milliseconds since some start. */
  readonly now?: () => number;
}

/** `3 of 7 texts, 10.0/s` */
export function countOf(noun: string): Unit {
  return {
    amount: (done, total) => `${done} of ${total} ${noun}`,
    rate: (perSecond) => `${perSecond.toFixed(1)}/s`,
  };
}

export const BYTES: Unit = {
  amount: (done, total) => `${byteText(done)} of ${byteText(total)}`,
  rate: (perSecond) => `${byteText(Math.round(perSecond))}/s`,
};

const SILENT_MS = 2000;
const TERMINAL_INTERVAL_MS = 100;
export const LOG_INTERVAL_MS = 10_000;
const BAR_COLUMNS = 20;

/** How far a long run has come: a bar on a terminal, a new line now and then elsewhere. */
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
    const { stream, unit, total, alreadyDone = 0, silentMs = SILENT_MS } = this.#options;
    const now = this.#now();
    const elapsedMs = now - this.#startedAt;
    const intervalMs = stream.isTTY ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS;
    if (elapsedMs < silentMs) return;
    if (this.#shownAt !== undefined && now - this.#shownAt < intervalMs) return;
    this.#shownAt = now;
    const rate = elapsedMs > 0 ? ((done - alreadyDone) / elapsedMs) * 1000 : 0;
    const speed = rate > 0 ? `, ${unit.rate(rate)}, ${timeText((total - done) / rate)} left` : "";
    const line = `${unit.amount(done, total)}${speed}`;
    stream.write(stream.isTTY ? this.#terminalLine(line, done / total) : `${line}\n`);
  }

  /** Clears the line on a terminal; the next update shows it again. */
  end(): void {
    const { stream } = this.#options;
    if (this.#shownAt !== undefined && stream.isTTY) stream.write("\r\u001b[2K");
  }

  #terminalLine(text: string, fraction: number): string {
    const { columns = 80 } = this.#options.stream;
    const full = Math.floor(Math.min(1, fraction) * BAR_COLUMNS);
    const bar = "█".repeat(full) + "░".repeat(BAR_COLUMNS - full);
    // a line that wraps could not be rewritten
    return `\r\u001b[2K${`${bar} ${text}`.slice(0, columns - 1)}`;
  }
}

/** `8 s`, `12 min`, `3 h` */
function timeText(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
