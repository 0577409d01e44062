import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";

/** What helps where a model computes nonsense. */
export const NEXT_STEP = "download the model again, or use another checkpoint";

/** The model computed NaN or an infinity. */
export class NotFinite extends Error {
  override readonly name = "NotFinite";

  constructor(problem: string) {
    super(`${problem}; ${NEXT_STEP}`);
  }
}

/** Numbers that are being computed. Exactly one of `read` and `drop` must be called. */
export interface PendingValues {
  /** Waits; row-major f32. Throws NotFinite on such a value. */
  read(): Float32Array<ArrayBuffer>;
  drop(): void;
}

/**
 * Starts computing what `build` makes a graph of. `problem` words the error for a value that is not finite.
 *
 * The graph is computed after its scope has ended: with no handle left on them, intermediate results are freed as
 * soon as they are used, which keeps the peak at a layer's worth of memory instead of the whole network's.
 */
export function pendingValues(
  build: () => Tensor,
  problem: (value: number) => string,
): PendingValues {
  const out = mx.scope(() => mx.keep(build()));
  mx.asyncEvaluate(out);
  return {
    read() {
      try {
        const values = out.toFloat32();
        const wrong = firstNotFinite(values);
        if (wrong === undefined) return values;
        throw new NotFinite(problem(wrong));
      } finally {
        out.free();
      }
    },
    drop: () => out.free(),
  };
}

/** A plain loop: a callback for each value takes some fifteen times as long. */
function firstNotFinite(values: Float32Array): number | undefined {
  for (const value of values) if (!Number.isFinite(value)) return value;
  return undefined;
}
