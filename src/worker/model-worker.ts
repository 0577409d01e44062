/** The thread that owns one model, its tokenizer and its MLX arrays. Talks only in the messages of protocol.ts. */
import { reasonOf } from "../native/thrown.ts";
import { resultBuffers } from "./job.ts";
import type { OpenModel } from "./open-model.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./protocol.ts";

declare const self: Worker;

let model: OpenModel | undefined;

// Set before anything asynchronous happens: a message that finds no handler is lost.
self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "load") void load(data.settings);
  else model?.submit(data.id, data.job, data.abort);
};

async function load(settings: WorkerSettings): Promise<void> {
  try {
    // Imported here, so that a native library that is missing or broken is an answer and not the worker's death.
    const { openModel } = await import("./open-model.ts");
    model = openModel(settings, {
      started: (id) => post({ type: "started", id }),
      result: (id, result) => post({ type: "result", id, result }, resultBuffers(result)),
      failed: (id, failure) => post({ type: "failed", id, failure: failure.toWire() }),
      spent: settings.profile ? (times) => post({ type: "spent", times }) : undefined,
    });
    post({ type: "loaded", info: model.info });
  } catch (error) {
    post({ type: "load-failed", message: reasonOf(error) });
  }
}

function post(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  self.postMessage(message, transfer);
}
