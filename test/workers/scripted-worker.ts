/**
 * A worker whose model is a script: the text of the first item says what happens. Lets the tests of the worker host
 * produce on purpose what real models only do by accident.
 */
import type { EmbedJob, EmbedResult } from "../../src/worker/job.ts";
import { unpackItems } from "../../src/worker/items.ts";
import type { FromWorker, ToWorker } from "../../src/worker/protocol.ts";

declare const self: Worker;

const post = (message: FromWorker) => self.postMessage(message);

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "load") return load(data.settings.directory);
  if (data.job.kind !== "embed") return;
  run(data.id, data.job);
};

function load(script: string): void {
  if (script === "refuse")
    return post({ type: "load-failed", message: "config.json: no such file" });
  if (script === "die-loading") throw new Error("out of memory");
  post({
    type: "loaded",
    info: {
      kind: "embedding",
      family: "scripted",
      dim: 1,
      maxLength: 8,
      vocabSize: 10,
      pooling: "mean",
      normalization: "none",
      multiVector: false,
      promptNames: [],
      device: "cpu",
      storedDtype: "float32",
      loadNotes: [],
      cpuPrecision: "f32",
      batchTokens: 4096,
      sliceTokens: 512,
    },
  });
}

function run(id: number, job: EmbedJob): void {
  const [item] = unpackItems(job.items);
  const script = item && "text" in item ? item.text : "ids";
  if (script === "die") throw new Error("segfault in a friendly form");
  if (script === "never-start") return;
  post({ type: "started", id });
  if (script === "never-finish") return;
  post({ type: "result", id, result: vectorOf(1) });
}

function vectorOf(value: number): EmbedResult {
  return {
    kind: "embed",
    vectors: Float32Array.of(value),
    dim: 1,
    tokens: Int32Array.of(1),
    truncated: 0,
  };
}
