import type * as ffi from "../../ffi/index.ts";

export interface MatmulRate {
  /** M, K and N of the product [M, K] x [K, N]. */
  readonly shape: readonly [number, number, number];
  readonly bestGflops: number;
  readonly medianGflops: number;
  /** Threads that shared the work; null where it cannot be told. */
  readonly threads: number | null;
  /** The best with one thread; null where the threads cannot be set. */
  readonly oneThreadGflops: number | null;
}

const SHAPE = [2048, 768, 3072] as const;
const REPETITIONS = 9;

/** How fast the device of this thread multiplies f32 matrices of the size that a BERT layer does. */
export function measureMatmul(mx: typeof ffi): MatmulRate {
  const [m, k, n] = SHAPE;
  return mx.scope(() => {
    const a = mx.fromFloat32(new Float32Array(m * k).fill(0.5), [m, k]);
    const b = mx.fromFloat32(new Float32Array(k * n).fill(0.5), [k, n]);
    const measure = () =>
      Array.from({ length: REPETITIONS }, () => gflops(mx, a, b)).sort((x, y) => x - y);
    gflops(mx, a, b); // the first one also wakes threads and allocates
    const rates = measure();
    const threads = mx.blasThreads();
    let oneThreadGflops: number | null = null;
    if (threads !== undefined && mx.setBlasThreads(1)) {
      oneThreadGflops = measure().at(-1)!;
      mx.setBlasThreads(threads);
    }
    return {
      shape: SHAPE,
      bestGflops: rates.at(-1)!,
      medianGflops: rates[Math.floor(REPETITIONS / 2)]!,
      threads: threads ?? null,
      oneThreadGflops,
    };
  });
}

function gflops(mx: typeof ffi, a: ffi.Tensor, b: ffi.Tensor): number {
  const [m, k, n] = SHAPE;
  const start = performance.now();
  mx.scope(() => mx.evaluate(mx.matmul(a, b)));
  const ms = performance.now() - start;
  return (2 * m * k * n) / (ms * 1e6);
}
