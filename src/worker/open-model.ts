import * as mx from "../../ffi/index.ts";
import { withDamageNamed } from "../models/damaged-weights.ts";
import { loadEmbeddingModel } from "../models/load-embedder.ts";
import { loadReranker } from "../models/load-reranker.ts";
import { bulkBatchTokens, type BatchLimits } from "./batch-former.ts";
import { calibrate } from "./calibrate.ts";
import { Engine, type EngineEvents } from "./engine.ts";
import type { EmbedderInfo, EmbedJob, Job, ModelInfo, RerankerInfo, RerankJob } from "./job.ts";
import { Pace } from "./pace.ts";
import type { WorkerSettings } from "./protocol.ts";
import type { BatchRow } from "./task.ts";
import { embedderWorkload, rerankerWorkload, type Workload } from "./workload.ts";

/** Rows of full length in one forward when no flag says otherwise. */
const FULL_LENGTH_TEXTS = 16;
const FULL_LENGTH_PAIRS = 8;

export interface OpenModel {
  readonly info: ModelInfo;
  submit(id: number, job: Job, abort: SharedArrayBuffer): void;
}

/** Loads the model on this thread and runs it. Throws with the reason, in one line, when it can't be loaded. */
export function openModel(settings: WorkerSettings, events: EngineEvents): OpenModel {
  if (settings.device === "gpu" && !mx.metalAvailable()) {
    throw new Error("--device gpu: Metal is not available here; use --device auto or cpu");
  }
  const device = mx.openDevice(settings.device);
  if (device === "cpu" && settings.cpuPrecision === "bf16" && !mx.packWeightsAsBf16()) {
    throw new Error(
      "--cpu-precision bf16 needs a CPU with AVX512-BF16, and MLXCEL_KERNELS unset; f32 works here",
    );
  }
  if (settings.memoryLimitBytes !== undefined) mx.setMemoryLimit(settings.memoryLimitBytes);
  mx.setCacheLimit(settings.cacheLimitBytes);
  return withDamageNamed(settings.directory, settings.base, () =>
    settings.kind === "reranker"
      ? openReranker(settings, device, events)
      : openEmbedder(settings, device, events),
  );
}

function openEmbedder(
  settings: WorkerSettings,
  device: "cpu" | "gpu",
  events: EngineEvents,
): OpenModel {
  const { directory, base, cpuDequantize, pooling, maxLength, normalize } = settings;
  const model = loadEmbeddingModel({
    ...{ directory, base, device, cpuDequantize },
    ...{ pooling, maxLength, normalize },
  });
  const limits = batchLimits(settings, FULL_LENGTH_TEXTS * model.facts.maxLength);
  const { engine, sliceTokens } = run(
    embedderWorkload(model),
    { limits, events, device },
    embedJob,
  );
  const info: EmbedderInfo = {
    kind: "embedding",
    ...model.facts,
    ...runFacts(settings, device, limits),
    sliceTokens,
    dim: model.dim,
    pooling: model.pooling,
    normalization: model.normalization,
    multiVector: model.multiVector,
    promptNames: model.promptNames,
  };
  return { info, submit: (id, job, abort) => engine.submit(id, job, abort) };
}

function openReranker(
  settings: WorkerSettings,
  device: "cpu" | "gpu",
  events: EngineEvents,
): OpenModel {
  const { directory, base, cpuDequantize, maxLength } = settings;
  const model = loadReranker({ directory, base, device, cpuDequantize, maxLength });
  const limits = batchLimits(settings, FULL_LENGTH_PAIRS * model.facts.maxLength);
  const { engine, sliceTokens } = run(
    rerankerWorkload(model),
    { limits, events, device },
    rerankJob,
  );
  const info: RerankerInfo = {
    kind: "reranker",
    ...model.facts,
    ...runFacts(settings, device, limits),
    sliceTokens,
    takesInstruction: model.takesInstruction,
  };
  return { info, submit: (id, job, abort) => engine.submit(id, job, abort) };
}

interface RunOptions {
  readonly limits: BatchLimits;
  readonly events: EngineEvents;
  readonly device: "cpu" | "gpu";
}

function run<Row extends BatchRow>(
  workload: Workload<Row>,
  { limits, events, device }: RunOptions,
  jobOf: (texts: readonly string[]) => EmbedJob | RerankJob,
) {
  const pace = new Pace();
  calibrate(workload, pace, jobOf);
  // What loading and timing left there would keep out what the batches to come give back.
  mx.clearCache();
  const engine = new Engine(workload, { limits, pace, events, ahead: device === "gpu" });
  return { engine, sliceTokens: bulkBatchTokens(limits, pace) };
}

function runFacts(
  { cpuPrecision = "f32" }: WorkerSettings,
  device: "cpu" | "gpu",
  { budgetTokens, jobTokens }: BatchLimits,
) {
  return {
    device,
    cpuPrecision: device === "cpu" ? cpuPrecision : undefined,
    batchTokens: budgetTokens,
    requestTokens: jobTokens,
  };
}

function embedJob(texts: readonly string[]): EmbedJob {
  const field = { name: "input", isList: true };
  return { kind: "embed", items: texts.map((text) => ({ text })), field, truncate: true };
}

function rerankJob(texts: readonly string[]): RerankJob {
  return { ...embedJob(texts), kind: "rerank", query: "what to warm up with" };
}

function batchLimits(settings: WorkerSettings, defaultTokens: number): BatchLimits {
  return {
    budgetTokens: settings.batchTokens ?? defaultTokens,
    maxRows: settings.batchRows ?? Number.POSITIVE_INFINITY,
    jobTokens: settings.requestTokens,
  };
}
