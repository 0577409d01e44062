import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import type { PendingValues } from "../pipeline/pending-values.ts";
import type { PairRow, Reranker } from "../pipeline/reranker.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { BiEncoderTask } from "./bi-encoder-task.ts";
import { EmbedTask, type VectorModel } from "./embed-task.ts";
import type { EmbedJob, RerankJob } from "./job.ts";
import { PairTask } from "./pair-task.ts";
import type { BatchRow, Task } from "./task.ts";

/** What an engine can do with one model: the tasks it opens for jobs, and the forward that runs their rows. */
export interface Workload<Row extends BatchRow> {
  readonly tokenizer: Tokenizer;
  open(id: number, job: EmbedJob | RerankJob, abort: SharedArrayBuffer): Task<Row>;
  /** [rows, width] */
  start(rows: readonly Row[]): PendingValues;
}

/** An embedder answers embedding jobs, and ranks by the cosine of its vectors. */
export function embedderWorkload(
  model: VectorModel & Pick<EmbeddingModel, "tokenizer" | "start">,
): Workload<EmbedRow> {
  return {
    tokenizer: model.tokenizer,
    start: (rows) => model.start(rows),
    open: (id, job, abort) =>
      job.kind === "embed"
        ? new EmbedTask(id, abort, job, model)
        : new BiEncoderTask(id, abort, job, model),
  };
}

/** A reranker judges pairs. */
export function rerankerWorkload(model: Reranker): Workload<PairRow> {
  return {
    tokenizer: model.tokenizer,
    start: (rows) => model.start(rows),
    open: (id, job, abort) => {
      if (job.kind === "rerank") return new PairTask(id, abort, job, model);
      throw new Error("a reranker has no vectors");
    },
  };
}
