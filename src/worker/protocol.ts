/** Messages between a worker host (serving/) and its model worker (worker/). */
import type { CpuDequantize } from "../models/open-weights.ts";
import type { NormalizeMode } from "../pipeline/normalize.ts";
import type { FailureWire } from "./failure.ts";
import type { Job, ModelInfo, Result } from "./job.ts";
import type { TimeSpent } from "./time-account.ts";

/** How to load and run one model; comes from the flags. */
export interface WorkerSettings {
  /** What the model is loaded as. */
  readonly kind: "embedding" | "reranker";
  /** The checkpoint's directory. */
  readonly directory: string;
  /** That of the model which the checkpoint is a LoRA adapter of. */
  readonly base?: string | undefined;
  readonly device: "auto" | "gpu" | "cpu";
  /** Whether quantised weights become f32 on the CPU; absent: auto. */
  readonly cpuDequantize?: CpuDequantize | undefined;
  /** Of matrix products on the CPU, in all workers of the process; absent: f32. */
  readonly cpuPrecision?: "f32" | "bf16" | undefined;
  /** Overrides the checkpoint's pooling. */
  readonly pooling?: "mean" | "cls" | "last" | "max" | undefined;
  readonly normalize?: NormalizeMode | undefined;
  /** Can only lower the checkpoint's limit. */
  readonly maxLength?: number | undefined;
  /** Hard cap on the rows of one forward; absent: rows are bounded by the token budget alone. */
  readonly batchRows?: number | undefined;
  /** Tokens of one forward; absent: 16 rows of full length, 8 pairs for a reranker. */
  readonly batchTokens?: number | undefined;
  /** Most tokens of one request; absent: no limit. */
  readonly requestTokens?: number | undefined;
  readonly memoryLimitBytes?: number | undefined;
  /** MLX keeps freed buffers by size; without a limit every new mix of lengths would make the process grow. */
  readonly cacheLimitBytes: number;
  /** Measure what batches spend their time on. Slower: operations run one by one. */
  readonly profile?: boolean | undefined;
}

export type ToWorker =
  | { readonly type: "load"; readonly settings: WorkerSettings }
  | {
      readonly type: "job";
      readonly id: number;
      readonly job: Job;
      /** One Int32: set to 1 to drop what has not run yet. Read between batches. */
      readonly abort: SharedArrayBuffer;
    };

export type FromWorker =
  | { readonly type: "loaded"; readonly info: ModelInfo }
  | { readonly type: "load-failed"; readonly message: string }
  /** The first row of the job entered a batch: it no longer waits in the queue. */
  | { readonly type: "started"; readonly id: number }
  | { readonly type: "result"; readonly id: number; readonly result: Result }
  | { readonly type: "failed"; readonly id: number; readonly failure: FailureWire }
  /** With `profile`: what a batch took, step by step. */
  | { readonly type: "spent"; readonly times: readonly TimeSpent[] };
