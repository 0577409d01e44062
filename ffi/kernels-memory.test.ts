import { expect, test } from "bun:test";
import { kernels } from "./testing/kernels.ts";

interface Counts {
  readonly faults: number;
  /** Of all results. */
  readonly pages: number;
}

// In a worker, as models run: the C library serves the main thread from another heap.
test.skipIf(!kernels)(
  "results of any number of rows take up memory that was freed before",
  async () => {
    const { promise, resolve, reject } = Promise.withResolvers<Counts>();
    const worker = new Worker(new URL("./kernels-memory.worker.ts", import.meta.url));
    worker.onmessage = ({ data }: MessageEvent<Counts>) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    const { faults, pages } = await promise.finally(() => worker.terminate());
    expect(faults).toBeLessThan(pages / 20);
  },
);
