import { expect, test } from "bun:test";
import * as mx from "./index.ts";
import { kernels, layer, matrix } from "./testing/kernels.ts";

const PAGE_BYTES = 4096;

test.skipIf(!kernels)("results of any number of rows take up memory that was freed before", () => {
  mx.scope(() => {
    const [inputs, outputs] = [16, 384];
    const { packed } = layer(kernels!, inputs, outputs, 1);
    const x = matrix(1000, inputs, 2);
    const counts = Array.from({ length: 100 }, (_, i) => 600 + ((i * 37) % 400));
    const computeAll = () => {
      for (const rows of counts) {
        mx.scope(() => {
          mx.evaluate(kernels!.linear(mx.slice(x, [0, 0], [rows, inputs]), packed));
        });
      }
    };
    computeAll();
    const before = process.resourceUsage().minorPageFault;
    computeAll();
    const faults = process.resourceUsage().minorPageFault - before;
    const pages = counts.reduce((sum, rows) => sum + (rows * outputs * 4) / PAGE_BYTES, 0);
    expect(faults).toBeLessThan(pages / 4);
  });
});
