import { expect, test } from "bun:test";
import * as mx from "./index.ts";
import { kernels, matrix, numbers, vector } from "./testing/kernels.ts";

test.skipIf(!kernels)("kernels of two threads and of one agree", () => {
  const before = mx.kernelThreads()!;
  const results = [1, 2, 5].map((threads) => {
    mx.setKernelThreads(threads);
    return mx.scope(() => {
      const weight = kernels!.pack(matrix(700, 384, 1));
      const x = matrix(300, 384, 2);
      return kernels!.linear(x, { weight, outputs: 700 }, "gelu").toFloat32();
    });
  });
  mx.setKernelThreads(before);
  expect(results[1]).toEqual(results[0]!);
  expect(results[2]).toEqual(results[0]!);
});

interface Rounds {
  readonly equal: boolean;
  readonly first: Float32Array;
}

function roundsInWorker(rounds: number): Promise<Rounds> {
  const { promise, resolve, reject } = Promise.withResolvers<Rounds>();
  const worker = new Worker(new URL("./kernels.worker.ts", import.meta.url));
  worker.onmessage = ({ data }: MessageEvent<Rounds>) => resolve(data);
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(rounds);
  return promise.finally(() => worker.terminate());
}

test.skipIf(!kernels)("workers that share the threads get the numbers of one alone", async () => {
  const { first } = await roundsInWorker(1);
  for (const rounds of await Promise.all([1, 2, 3].map(() => roundsInWorker(60)))) {
    expect(rounds.equal).toBe(true);
    expect(rounds.first).toEqual(first);
  }
});

test.skipIf(!kernels)("threads without work sleep", async () => {
  mx.scope(() => kernels!.rmsNorm(matrix(4000, 384, 1), vector(numbers(384, 2)), 1e-6).toFloat32());
  const before = process.cpuUsage();
  await Bun.sleep(1000);
  const { user, system } = process.cpuUsage(before);
  // Awake, one thread alone would use up the whole second.
  expect((user + system) / 1e6).toBeLessThan(0.3);
});
