import { afterAll, describe, expect, test } from "bun:test";
import * as mx from "./index.ts";
import { mlx } from "./library.ts";
import { catchErrors, openMemoryStream, takeText } from "./memory-stream.ts";
import { slot } from "./slot.ts";
import { stream } from "./stream.ts";
import { pointer } from "./tensor.ts";

function thrownBy(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  return undefined;
}

function shapeMismatch(width: number): RegExp {
  return new RegExp(
    `^matmul: \\[matmul\\] Last dimension of first input with shape \\(2,${width}\\)`,
  );
}

interface WorkerAnswer {
  readonly messages: readonly string[];
  readonly total: number;
}

function failInWorker(width: number): Promise<WorkerAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<WorkerAnswer>();
  const worker = new Worker(new URL("./failing.worker.ts", import.meta.url));
  worker.onmessage = ({ data }: MessageEvent<WorkerAnswer>) => resolve(data);
  worker.onerror = (event) => reject(new Error(event.message));
  worker.postMessage(width);
  return promise.finally(() => worker.terminate());
}

describe("an error of mlx", () => {
  test("is thrown with mlx's text and the operation's name", () => {
    const a = mx.zeros([2, 3]);
    const error = thrownBy(() => mx.matmul(a, a));
    expect(error).toBeInstanceOf(mx.MlxError);
    expect(error).toMatchObject({
      operation: "matmul",
      message: expect.stringMatching(shapeMismatch(3)),
    });
    a.free();
  });

  test("names no file of the machine that built the library", () => {
    const a = mx.zeros([2, 3]);
    expect(() => mx.reshape(a, [7])).toThrow(/into shape \(7\)\.$/);
    a.free();
  });

  test("leaves the operations after it unharmed", () => {
    const a = mx.ones([2, 3]);
    expect(() => mx.matmul(a, a)).toThrow(mx.MlxError);
    expect(mx.scope(() => mx.sum(a).toFloat32())).toEqual(new Float32Array([6]));
    a.free();
  });

  test("in two workers and the main thread at once reaches each with its own text", async () => {
    const workers = Promise.all([failInWorker(3), failInWorker(5)]);
    const a = mx.zeros([2, 7]);
    expect(() => mx.matmul(a, a)).toThrow(shapeMismatch(7));
    const [three, five] = await workers;
    expect(three.messages).toHaveLength(200);
    for (const message of three.messages) expect(message).toMatch(shapeMismatch(3));
    for (const message of five.messages) expect(message).toMatch(shapeMismatch(5));
    expect([three.total, five.total]).toEqual([6, 10]);
    a.free();
  });
});

describe("the error sink for foreign builds of mlx-c", () => {
  afterAll(() => mx.installErrorHandler());

  test("keeps the text of each failure until it is taken", () => {
    const sink = openMemoryStream();
    catchErrors(sink);
    const a = mx.zeros([2, 3]);
    for (const size of [70, 8]) {
      const sizes = new Int32Array([size]);
      expect(mlx.mlx_reshape(slot, pointer(a), sizes, 1, stream())).not.toBe(0);
      expect(takeText(sink)).toStartWith(
        `[reshape] Cannot reshape array of size 6 into shape (${size}).`,
      );
      expect(takeText(sink)).toBe("");
    }
    a.free();
  });
});
