import { afterAll, describe, expect, test } from "bun:test";
import * as mx from "./index.ts";

const MIB = 1024 * 1024;
const formerLimit = mx.setCacheLimit(64 * MIB);
afterAll(() => {
  mx.setCacheLimit(formerLimit);
});

function buildEvaluateFree(seed: mx.Tensor): void {
  mx.scope(() => {
    const x = mx.matmul(seed, mx.transpose(seed));
    const parts = mx.split(mx.softmax(x, -1), 2, 0);
    const y = mx.concatenate([mx.layerNorm(parts[0]!, null, null, 1e-5), parts[1]!], 0);
    mx.evaluate(y);
    mx.sum(y).toFloat32();
  });
}

function iterate(seed: mx.Tensor, count: number): number {
  for (let i = 0; i < count; i++) buildEvaluateFree(seed);
  Bun.gc(true);
  return process.memoryUsage.rss();
}

describe("memory", () => {
  test("does not grow over 10 000 rounds of build, evaluate and free", () => {
    const seed = mx.ones([16, 16]);
    mx.evaluate(seed);
    let resident = iterate(seed, 10_000);
    const activeBefore = mx.activeBytes();
    // What the allocator or the garbage collector takes once is no leak: a leak grows every time.
    const growths = Array.from({ length: 2 }, () => {
      const before = resident;
      resident = iterate(seed, 10_000);
      return resident - before;
    });
    expect(mx.activeBytes()).toBe(activeBefore);
    // One tensor that is kept per round takes more than 12 MiB, even one that is never evaluated.
    expect(Math.min(...growths)).toBeLessThan(8 * MIB);
    seed.free();
  }, 120_000);

  test("does not grow over failing operations", () => {
    const a = mx.ones([2, 3]);
    mx.evaluate(a);
    const before = mx.activeBytes();
    for (let i = 0; i < 1000; i++) {
      expect(() => mx.scope(() => mx.matmul(mx.exp(a), a))).toThrow(mx.MlxError);
    }
    expect(mx.activeBytes()).toBe(before);
    a.free();
  });

  test("of freed buffers stays within the cache limit", () => {
    mx.clearCache();
    expect(mx.cacheBytes()).toBe(0);
    mx.setCacheLimit(8 * MIB);
    for (let megabytes = 1; megabytes <= 12; megabytes++) {
      mx.scope(() => mx.evaluate(mx.ones([megabytes, MIB / 4])));
      expect(mx.cacheBytes()).toBeLessThanOrEqual(8 * MIB);
    }
    expect(mx.cacheBytes()).toBeGreaterThan(0);
    expect(mx.setCacheLimit(64 * MIB)).toBe(8 * MIB);
    mx.clearCache();
    expect(mx.cacheBytes()).toBe(0);
  });

  test("statistics follow what lives and what was the most", () => {
    const before = mx.activeBytes();
    mx.resetPeak();
    mx.scope(() => {
      const a = mx.contiguous(mx.ones([MIB]));
      mx.evaluate(mx.exp(a), a);
      expect(mx.activeBytes()).toBeGreaterThanOrEqual(before + 4 * MIB);
    });
    expect(mx.activeBytes()).toBe(before);
    expect(mx.peakBytes()).toBeGreaterThanOrEqual(before + 4 * MIB);
  });
});
