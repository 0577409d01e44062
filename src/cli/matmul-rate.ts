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
  /** The best of the kernels that models run on here, with their own threads; null where there are none. */
  readonly kernelGflops: number | null;
}

const SHAPE = [2048, 768, 3072] as const;
const REPETITIONS = 9;

/**
 * How fast the device of this thread multiplies f32 matrices of the size that a BERT layer does: MLX's own product,
 * which OpenBLAS computes on Linux, with `cores` threads and with one, and the kernels' product.
 */
export function measureMatmul(mx: typeof ffi, cores: number): MatmulRate {
  const [m, k, n] = SHAPE;
  return mx.scope(() => {
    const a = mx.fromFloat32(new Float32Array(m * k).fill(0.5), [m, k]);
    const b = mx.fromFloat32(new Float32Array(k * n).fill(0.5), [k, n]);
    const threadsBefore = mx.blasThreads();
    mx.setBlasThreads(cores);
    const rates = measure(mx, () => mx.matmul(a, b));
    const threads = mx.blasThreads();
    let oneThreadGflops: number | null = null;
    if (threadsBefore !== undefined && mx.setBlasThreads(1)) {
      oneThreadGflops = measure(mx, () => mx.matmul(a, b)).at(-1)!;
      mx.setBlasThreads(threadsBefore);
    }
    return {
      shape: SHAPE,
      bestGflops: rates.at(-1)!,
      medianGflops: rates[Math.floor(REPETITIONS / 2)]!,
      threads: threads ?? null,
      oneThreadGflops,
      kernelGflops: kernelRate(mx, a),
    };
  });
}

function kernelRate(mx: typeof ffi, a: ffi.Tensor): number | null {
  const kernels = mx.kernels();
  if (!kernels) return null;
  const [, k, n] = SHAPE;
  const weight = kernels.pack(mx.fromFloat32(new Float32Array(n * k).fill(0.5), [n, k]));
  const layer = { weight, outputs: n };
  return measure(mx, () => kernels.linear(a, layer)).at(-1)!;
}

/** GFLOP/s of each repetition, slowest first. */
function measure(mx: typeof ffi, product: () => ffi.Tensor): number[] {
  gflops(mx, product); // the first one also wakes threads and allocates
  return Array.from({ length: REPETITIONS }, () => gflops(mx, product)).sort((x, y) => x - y);
}

function gflops(mx: typeof ffi, product: () => ffi.Tensor): number {
  const [m, k, n] = SHAPE;
  const start = performance.now();
  mx.scope(() => mx.evaluate(product()));
  const ms = performance.now() - start;
  return (2 * m * k * n) / (ms * 1e6);
}
