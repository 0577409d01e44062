import type { DownloadListener } from "../hub/pull.ts";
import type { Logger } from "../serving/log.ts";
import { BYTES, LOG_INTERVAL_MS, Progress, type ProgressStream } from "./progress.ts";

/** What the shell reports of a process that a signal ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Shows a download: a bar on a terminal, plain lines elsewhere, entries of the log where there is one. Ctrl-C ends the process at once: what has arrived lies
 * in the store already.
 */
export class DownloadDisplay implements DownloadListener, Disposable {
  readonly #stream: ProgressStream;
  readonly #log: Logger | undefined;
  readonly #stops = Object.entries(EXIT_CODES).map(
    ([signal, code]) => [signal, () => this.#stop(code)] as const,
  );
  #progress: Progress | undefined;

  constructor(stream: ProgressStream, log?: Logger) {
    this.#stream = log ? { write: (line) => log.info(line.trimEnd()) } : stream;
    this.#log = log;
  }

  remark(text: string): void {
    this.#progress?.end();
    if (this.#log) this.#log.info(text);
    else this.#stream.write(`mlxcel: ${text}\n`);
  }

  progress(doneBytes: number, totalBytes: number): void {
    if (this.#progress === undefined) {
      for (const [signal, stop] of this.#stops) process.on(signal, stop);
      this.#progress = new Progress({
        stream: this.#stream,
        unit: BYTES,
        total: totalBytes,
        alreadyDone: doneBytes,
        silentMs: this.#stream.isTTY ? 0 : LOG_INTERVAL_MS,
      });
    }
    this.#progress.update(doneBytes);
  }

  [Symbol.dispose](): void {
    this.#progress?.end();
    for (const [signal, stop] of this.#stops) process.off(signal, stop);
  }

  #stop(code: number): never {
    this.remark("stopped; run the same command again, and it goes on from here");
    process.exit(code);
  }
}
