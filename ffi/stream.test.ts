import { describe, expect, test } from "bun:test";
import * as mx from "./index.ts";

function productInWorker(rounds: number): Promise<Float32Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Float32Array>();
  const worker = new Worker(new URL("./product.worker.ts", import.meta.url));
  worker.onmessage = ({ data }: MessageEvent<Float32Array>) => resolve(data);
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(rounds);
  return promise.finally(() => worker.terminate());
}

describe("devices and streams", () => {
  test("auto is the GPU exactly where Metal is available", () => {
    expect(mx.openDevice("auto")).toBe(mx.metalAvailable() ? "gpu" : "cpu");
  });

  test.skipIf(mx.metalAvailable())("the GPU is refused where there is no Metal", () => {
    expect(() => mx.openDevice("gpu")).toThrow(/Metal is not available/);
  });

  test("one thread computes in one place", () => {
    const device = mx.openDevice("auto");
    expect(mx.openDevice(device)).toBe(device);
    if (device === "gpu") expect(() => mx.openDevice("cpu")).toThrow(/on the gpu already/);
  });

  test("two workers at once, each on its own stream, get equal numbers", async () => {
    const [one, two] = await Promise.all([productInWorker(50), productInWorker(50)]);
    expect(one).toHaveLength(64 * 64);
    expect(one).toEqual(two);
    const row = Array.from({ length: 96 }, (_, i) => Math.sin(i));
    expect(one[0]).toBeCloseTo(
      row.reduce((sum, x) => sum + x * x, 0),
      3,
    );
  });
});
