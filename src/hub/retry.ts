/** A failure that may be gone the next time. */
export class TransientError extends Error {
  override readonly name = "TransientError";

  constructor(
    message: string,
    /** How long the server asks to be left alone. */
    readonly waitMs?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface RetryOptions {
  /** The first pause; each further one is twice as long, give or take a quarter. */
  readonly firstPauseMs: number;
  /** Told of a pause that a person would notice. */
  readonly onRemark: (text: string) => void;
  readonly signal: AbortSignal;
}

const MOST_ATTEMPTS = 5;
const NOTICEABLE_MS = 2000;
/** Whoever asks for more is not waited for. */
const LONGEST_WAIT_MS = 5 * 60_000;
/** Whoever asks for more does not mean it. */
const LONGEST_STATED_WAIT_MS = 7 * 24 * 60 * 60_000;

/**
 * Runs `attempt` until it succeeds or fails for good. It is given up after five failures in a row without progress.
 *
 * @param attempt calls `progressed` whenever it got further than ever before
 */
export async function withRetries<T>(
  options: RetryOptions,
  attempt: (progressed: () => void) => Promise<T>,
): Promise<T> {
  let failures = 0;
  for (;;) {
    try {
      return await attempt(() => {
        failures = 0;
      });
    } catch (error) {
      options.signal.throwIfAborted();
      failures++;
      if (!(error instanceof TransientError)) throw error;
      const pauseMs = error.waitMs ?? backOffMs(options.firstPauseMs, failures);
      if (failures >= MOST_ATTEMPTS || pauseMs > LONGEST_WAIT_MS) throw givenUp(error);
      if (pauseMs >= NOTICEABLE_MS) {
        options.onRemark(`${error.message}; trying again in ${Math.round(pauseMs / 1000)} s`);
      }
      await pause(pauseMs, options.signal);
    }
  }
}

function backOffMs(firstPauseMs: number, failures: number): number {
  const jitter = 0.75 + Math.random() / 2;
  return firstPauseMs * 2 ** (failures - 1) * jitter;
}

function givenUp({ message, waitMs }: TransientError): Error {
  const isStated = waitMs !== undefined && waitMs < LONGEST_STATED_WAIT_MS;
  const wait = isStated ? `in ${Math.ceil(waitMs / 1000)} s` : "later";
  return new Error(`${message}; try again ${wait}, what has arrived is kept`);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const stopped = Promise.withResolvers<void>();
  const timer = setTimeout(stopped.resolve, ms);
  signal.addEventListener("abort", () => stopped.resolve(), { once: true });
  await stopped.promise;
  clearTimeout(timer);
  signal.throwIfAborted();
}
