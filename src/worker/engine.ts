import type { PendingVectors } from "../pipeline/embedder.ts";
import { type Batch, BatchFormer, type BatchLimits } from "./batch-former.ts";
import { EmbedTask, type RunnableModel } from "./embed-task.ts";
import { Failure } from "./failure.ts";
import type { DetokenizeJob, EmbedJob, Job, Result, TokenizeJob } from "./job.ts";

/** Where the engine reports what becomes of the jobs. Every submitted job gets exactly one result or failure. */
export interface EngineEvents {
  /** The first row of the job entered a batch. */
  started(id: number): void;
  result(id: number, result: Result): void;
  failed(id: number, failure: Failure): void;
}

interface RunningBatch {
  readonly batch: Batch;
  readonly vectors: PendingVectors;
}

/** Runs jobs on one model: tokenizes, batches across jobs, and prepares the next batch while one runs. */
export class Engine {
  private readonly former: BatchFormer;
  private looping = false;

  constructor(
    private readonly model: RunnableModel,
    limits: BatchLimits,
    private readonly events: EngineEvents,
  ) {
    this.former = new BatchFormer(limits, {
      started: (task) => this.events.started(task.id),
      failed: (task, failure) => this.fail(task, failure),
    });
  }

  /** `abort`: one Int32, non-zero once nobody waits for the answer. */
  submit(id: number, job: Job, abort: SharedArrayBuffer): void {
    if (job.kind !== "embed") {
      this.events.started(id);
      this.answerAtOnce(id, job);
      return;
    }
    this.former.add(this.openTask(id, job, abort));
    // An error that escapes the loop is a bug: it must end the worker, which then reports every job it held.
    if (!this.looping) void this.loop();
  }

  private openTask(id: number, job: EmbedJob, abort: SharedArrayBuffer): EmbedTask {
    return new EmbedTask(id, job, this.model, new Int32Array(abort));
  }

  private answerAtOnce(id: number, job: TokenizeJob | DetokenizeJob): void {
    try {
      this.events.result(id, job.kind === "tokenize" ? this.tokenize(job) : this.detokenize(job));
    } catch (error) {
      this.events.failed(id, internalFailure(error));
    }
  }

  private tokenize({ text, addSpecial, withPieces }: TokenizeJob): Result {
    const { ids } = this.model.tokenizer.encode(text, { addSpecial });
    const pieces = withPieces ? this.model.tokenizer.pieces(ids) : undefined;
    return { kind: "tokenize", ids: new Int32Array(ids), pieces };
  }

  private detokenize({ ids }: DetokenizeJob): Result {
    return { kind: "detokenize", text: this.model.tokenizer.decode(ids) };
  }

  private async loop(): Promise<void> {
    this.looping = true;
    let running: RunningBatch | undefined;
    while (running || !this.former.idle) {
      // Lets messages in: new jobs may join the batch that is formed next.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const next = this.start(this.former.next());
      if (running) this.deliver(running);
      running = next;
    }
    this.looping = false;
  }

  private start(batch: Batch | undefined): RunningBatch | undefined {
    if (!batch) return undefined;
    try {
      return { batch, vectors: this.model.start(batch.rows) };
    } catch (error) {
      this.runJobByJob(batch, error);
      return undefined;
    }
  }

  private deliver({ batch, vectors }: RunningBatch): void {
    let raw: Float32Array;
    try {
      raw = vectors.read();
    } catch (error) {
      this.runJobByJob(batch, error);
      return;
    }
    this.handOut(batch, raw);
  }

  /** `raw`: [rows, raw width], the vectors of the batch before normalization. */
  private handOut(batch: Batch, raw: Float32Array): void {
    const width = raw.length / batch.rows.length;
    for (const { task, item, row } of batch.uses) {
      if (task.settled) continue;
      task.finishItem(item, raw.subarray(row * width, (row + 1) * width));
      if (task.done) {
        task.settled = true;
        this.events.result(task.id, task.result());
      }
    }
  }

  /** A batch failed: jobs that merely shared it with the culprit still get their answer. */
  private runJobByJob(batch: Batch, cause: unknown): void {
    const tasks = [...new Set(batch.uses.map((use) => use.task))].filter((task) => !task.settled);
    if (tasks.length === 1) {
      this.fail(tasks[0]!, internalFailure(cause));
      return;
    }
    for (const task of tasks) {
      const uses = batch.uses.filter((use) => use.task === task);
      const rows = uses.map((use) => batch.rows[use.row]!);
      const alone: Batch = { rows, uses: uses.map((use, row) => ({ ...use, row })) };
      try {
        this.handOut(alone, this.model.start(rows).read());
      } catch (error) {
        this.fail(task, internalFailure(error));
      }
    }
  }

  private fail(task: EmbedTask, failure: Failure): void {
    task.settled = true;
    this.events.failed(task.id, failure);
  }
}

function internalFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure(
    "internal",
    `inference failed: ${error instanceof Error ? error.message : error}`,
  );
}
