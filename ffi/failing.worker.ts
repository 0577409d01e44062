/** Worker of error.test.ts: fails in mlx again and again, answers with the messages and a sum that it got right. */
import * as mx from "./index.ts";

declare const self: Worker;

self.onmessage = ({ data: width }: MessageEvent<number>) => {
  mx.openDevice("cpu");
  const a = mx.zeros([2, width]);
  const messages = Array.from({ length: 200 }, () => {
    try {
      mx.matmul(a, a).free();
      return "no error";
    } catch (error) {
      return error instanceof mx.MlxError ? error.message : "another error";
    }
  });
  const total = mx.scope(() => mx.sum(mx.ones([2, width])).toFloat32()[0]);
  self.postMessage({ messages, total });
};
