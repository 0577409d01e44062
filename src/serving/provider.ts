import type { Job, ModelInfo, ResultOf } from "../worker/job.ts";

/** `bi_encoder` and `late_interaction`: an embedder that also ranks, as seen by rerank requests. */
export type ModelKind = "embedding" | "reranker" | "bi_encoder" | "late_interaction";

export type ProviderState = "loading" | "ready" | "failed";

/** One model that answers requests, with its own worker, queue, timeout and failures. */
export interface Provider {
  readonly id: string;
  readonly names: readonly string[];
  readonly kind: ModelKind;
  readonly state: ProviderState;
  /** Undefined until the model is loaded. */
  readonly info: ModelInfo | undefined;
  /** Unix seconds when the model became ready. */
  readonly created: number;
  /** Requests that wait: admitted, none of their rows started. */
  readonly waiting: number;
  /** How many may wait; one more is refused. */
  readonly queueDepth: number;
  /**
   * Admits the job whole or rejects at once with Failure("busy"). Rejects with Failure: "timeout" after the
   * request timeout, "cancelled" when `signal` aborts, "invalid" for a length error, "internal" if the worker fails.
   */
  submit<J extends Job>(job: J, signal: AbortSignal): Promise<ResultOf<J>>;
}
