/** Worker of kernels-threads.test.ts: runs kernels on its own stream; answers whether every round gave the same numbers. */
import * as mx from "./index.ts";

declare const self: Worker;

function waves(rows: number, width: number, pitch: number): mx.Tensor {
  const values = Float32Array.from({ length: rows * width }, (_, i) => Math.sin(i * pitch));
  return mx.fromFloat32(values, [rows, width]);
}

self.onmessage = ({ data: rounds }: MessageEvent<number>) => {
  mx.openDevice("cpu");
  const kernels = mx.kernels();
  if (!kernels) throw new Error("no kernels");
  const [tokens, width] = [64, 192];
  const layer = { weight: kernels.pack(waves(width, width, 1.3)), outputs: width };
  const rows = { lengths: Int32Array.of(8, 16, 40), heads: 6, kvHeads: 6, scale: 0.2 };
  const run = () =>
    mx.scope(() => {
      const x = kernels.linear(waves(tokens, width, 0.7), layer, "gelu");
      const attended = kernels.attention(x, x, x, rows);
      return kernels.linearResidual(attended, layer, x).toFloat32();
    });
  const first = run();
  let equal = true;
  for (let round = 1; round < rounds; round++) {
    equal &&= run().every((value, i) => Object.is(value, first[i]));
  }
  self.postMessage({ equal, first });
};
