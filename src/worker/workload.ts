import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import type { PendingValues } from "../pipeline/pending-values.ts";
import type { PairRow, Reranker } from "../pipeline/reranker.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { BiEncoderTask } from "./bi-encoder-task.ts";
import { SingleVectorTask, type VectorModel } from "./embed-task.ts";
import type { EmbedJob, RerankJob } from "./job.ts";
import { LateInteractionTask } from "./late-interaction-task.ts";
import { MultiVectorTask } from "./multi-vector-task.ts";
import { PairTask } from "./pair-task.ts";
import type { BatchRow, Task } from "./task.ts";

/** What an engine can do with one model: the tasks it opens for jobs, and the forward that runs their rows. */
export interface Workload<Row extends BatchRow> {
  readonly tokenizer: Tokenizer;
  open(id: number, job: EmbedJob | RerankJob, abort: SharedArrayBuffer): Task<Row>;
  /** [outputs of all rows, width] */
  start(rows: readonly Row[]): PendingValues;
}

/** An embedder answers embedding jobs, and ranks by the cosine or the MaxSim of its vectors. */
export function embedderWorkload(
  model: VectorModel & Pick<EmbeddingModel, "tokenizer" | "start">,
): Workload<EmbedRow> {
  return {
    tokenizer: model.tokenizer,
    start: (rows) => model.start(rows),
    open: (id, job, abort) => {
      if (job.kind === "embed") {
        const EmbedTask = model.multiVector ? MultiVectorTask : SingleVectorTask;
        return new EmbedTask(id, abort, job, model);
      }
      const RankingTask = model.multiVector ? LateInteractionTask : BiEncoderTask;
      return new RankingTask(id, abort, job, model);
    },
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
