/** The thread that owns one model, its tokenizer and its MLX arrays. Talks only in the messages of protocol.ts. */
import * as mx from "../../ffi/index.ts";
import { loadEmbeddingModel } from "../models/load.ts";
import type { EmbeddingModel } from "../pipeline/embedder.ts";
import type { BatchLimits } from "./batch-former.ts";
import { Engine } from "./engine.ts";
import type { ModelInfo, Result } from "./job.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./protocol.ts";

declare const self: Worker;

/** Rows of full length in one forward when no flag says otherwise. */
const FULL_LENGTH_ROWS = 16;

let engine: Engine | undefined;

// Set before anything asynchronous happens: a message that finds no handler is lost.
self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "load") load(data.settings);
  else engine?.submit(data.id, data.job, data.abort);
};

function load(settings: WorkerSettings): void {
  try {
    const device = mx.openDevice(settings.device);
    if (settings.memoryLimitBytes !== undefined) mx.setMemoryLimit(settings.memoryLimitBytes);
    mx.setCacheLimit(settings.cacheLimitBytes);
    const { directory, pooling, maxLength, normalize } = settings;
    const model = loadEmbeddingModel({ directory, device, pooling, maxLength, normalize });
    model.warmUp();
    engine = new Engine(model, batchLimits(settings, model), {
      started: (id) => post({ type: "started", id }),
      result: (id, result) => post({ type: "result", id, result }, transferables(result)),
      failed: (id, failure) => post({ type: "failed", id, failure: failure.toWire() }),
    });
    post({ type: "loaded", info: modelInfo(model, device) });
  } catch (error) {
    post({ type: "load-failed", message: error instanceof Error ? error.message : String(error) });
  }
}

function batchLimits(settings: WorkerSettings, model: EmbeddingModel): BatchLimits {
  return {
    budgetTokens: settings.batchTokens ?? FULL_LENGTH_ROWS * model.maxLength,
    maxRows: settings.batchRows ?? Number.POSITIVE_INFINITY,
  };
}

function modelInfo(model: EmbeddingModel, device: "cpu" | "gpu"): ModelInfo {
  const { family, dim, maxLength, vocabSize, pooling, normalization, multiVector } = model;
  const { promptNames, storedDtype, weightBytes } = model;
  return {
    ...{ family, dim, maxLength, vocabSize, pooling, normalization, multiVector },
    ...{ promptNames, storedDtype, weightBytes, device },
  };
}

function transferables(result: Result): ArrayBuffer[] {
  if (result.kind === "embed") return [result.vectors.buffer, result.tokens.buffer];
  return result.kind === "tokenize" ? [result.ids.buffer] : [];
}

function post(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  self.postMessage(message, transfer);
}
