import { check } from "./error.ts";
import { mlx } from "./library.ts";

/** Is told how long each operation took. */
interface OperationClock {
  add(operation: string, elapsedMs: number): void;
}

let clock: OperationClock | undefined;
let phase: string | undefined;

/**
 * While `body` runs, this thread computes every operation as soon as it is made and tells `to` how long it took. The
 * values are the same; nothing overlaps any more.
 */
export function clockOperations<T>(to: OperationClock, body: () => T): T {
  const outer = clock;
  clock = to;
  try {
    return body();
  } finally {
    clock = outer;
  }
}

/** The operations of `body` count under this name when they are clocked, instead of each under its own. */
export function asPhase<T>(name: string, body: () => T): T {
  if (!clock) return body();
  const outer = phase;
  phase = name;
  try {
    return body();
  } finally {
    phase = outer;
  }
}

/** For whatever makes an operation: computes it now if operations are clocked. */
export function clockOperation(operation: string, handle: number): void {
  if (!clock) return;
  const startedAtMs = performance.now();
  check(operation, mlx.mlx_array_eval(handle));
  clock.add(phase ?? operation, performance.now() - startedAtMs);
}
