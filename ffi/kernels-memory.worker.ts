/** Worker of kernels-memory.test.ts: counts the page faults of passes with ever other numbers of rows. */
import * as mx from "./index.ts";

declare const self: Worker;

const PAGE_BYTES = 4096;
const LAYERS = 18;
/** Narrow layers with wide results: little to compute. */
const [INPUTS, OUTPUTS] = [8, 384];
const rowCounts = Array.from({ length: 40 }, (_, i) => 900 + ((i * 37) % 400));

mx.openDevice("cpu");
const kernels = mx.kernels();
if (!kernels) throw new Error("no kernels");
mx.setCacheLimit(32 * 2 ** 20);

const ones = (rows: number) =>
  mx.fromFloat32(new Float32Array(rows * INPUTS).fill(1 / INPUTS), [rows, INPUTS]);
const layer = { weight: kernels.pack(ones(OUTPUTS)), outputs: OUTPUTS };
const x = ones(1300);
mx.evaluate(layer.weight, x);

/** As a batch is computed: no handles are left on what lies between. */
function pass(kernels: mx.Kernels, rows: number): void {
  const out = mx.scope(() => {
    let hidden = mx.slice(x, [0, 0], [rows, INPUTS]);
    for (let i = 0; i < LAYERS; i++) {
      hidden = mx.slice(kernels.linear(hidden, layer), [0, 0], [rows, INPUTS]);
    }
    return mx.keep(mx.sum(hidden));
  });
  mx.asyncEvaluate(out);
  out.toFloat32();
  out.free();
}

const passes = () => {
  for (const rows of rowCounts) pass(kernels, rows);
};
passes();
const before = process.resourceUsage().minorPageFault;
passes();
const faults = process.resourceUsage().minorPageFault - before;
const rows = rowCounts.reduce((sum, count) => sum + count, 0);
self.postMessage({ faults, pages: (rows * OUTPUTS * 4 * LAYERS) / PAGE_BYTES });
