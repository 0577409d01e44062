/** Worker of stream.test.ts: multiplies on its own stream and answers with the product. */
import * as mx from "./index.ts";

declare const self: Worker;

self.onmessage = ({ data: rounds }: MessageEvent<number>) => {
  mx.openDevice("cpu");
  let product = new Float32Array(0);
  for (let round = 0; round < rounds; round++) {
    product = mx.scope(() => {
      const a = mx.reshape(mx.sin(mx.arange(64 * 96, "float32")), [64, 96]);
      const b = mx.matmul(a, mx.transpose(a));
      mx.asyncEvaluate(b);
      return b.toFloat32();
    });
  }
  self.postMessage(product, [product.buffer]);
};
