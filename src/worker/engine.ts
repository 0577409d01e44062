import * as mx from "../../ffi/index.ts";
import { reasonOf } from "../native/thrown.ts";
import type { PendingValues } from "../pipeline/pending-values.ts";
import type { Batch } from "./batch.ts";
import { BatchFormer, type BatchLimits } from "./batch-former.ts";
import { Failure } from "./failure.ts";
import type { DetokenizeJob, Job, Result, TokenizeJob } from "./job.ts";
import type { Pace } from "./pace.ts";
import type { BatchRow, Task } from "./task.ts";
import { TimeAccount, type TimeSpent } from "./time-account.ts";
import type { Workload } from "./workload.ts";

/** Where the engine reports what becomes of the jobs. Every submitted job gets exactly one result or failure. */
export interface EngineEvents {
  /** The first row of the job entered a batch. */
  started(id: number): void;
  result(id: number, result: Result): void;
  failed(id: number, failure: Failure): void;
  /** What a batch took, step by step; absent: not measured, which is faster. */
  readonly spent?: ((times: readonly TimeSpent[]) => void) | undefined;
}

interface EngineOptions {
  readonly limits: BatchLimits;
  /** What is known of the model's speed; the engine keeps it up to date. */
  readonly pace: Pace;
  readonly events: EngineEvents;
  /**
   * Start the next batch before the one that runs is read. Worth it on a GPU, which would stand still meanwhile. On
   * the CPU starting a batch computes most of it, so the finished one would wait for nothing.
   */
  readonly ahead: boolean;
}

interface RunningBatch<Row extends BatchRow> {
  readonly batch: Batch<Row>;
  readonly output: PendingValues;
  readonly startedAtMs: number;
}

/** Runs jobs on one model: tokenizes, batches across jobs, and prepares the next batch while one runs. */
export class Engine<Row extends BatchRow> {
  readonly #former: BatchFormer<Row>;
  readonly #pace: Pace;
  readonly #events: EngineEvents;
  readonly #ahead: boolean;
  #looping = false;
  #lastDeliveryMs = 0;
  readonly #account: TimeAccount | undefined;
  readonly #workload: Workload<Row>;

  constructor(workload: Workload<Row>, { limits, pace, events, ahead }: EngineOptions) {
    this.#workload = workload;
    this.#pace = pace;
    this.#events = events;
    this.#ahead = ahead;
    this.#account = events.spent && new TimeAccount();
    this.#former = new BatchFormer(limits, this.#pace, {
      started: (task) => this.#events.started(task.id),
      failed: (task, failure) => this.#fail(task, failure),
    });
  }

  /** `abort`: one Int32, non-zero once nobody waits for the answer. */
  submit(id: number, job: Job, abort: SharedArrayBuffer): void {
    if (job.kind === "tokenize" || job.kind === "detokenize") {
      this.#events.started(id);
      this.#answerAtOnce(id, job);
      return;
    }
    try {
      this.#former.add(this.#workload.open(id, job, abort));
    } catch (error) {
      this.#events.failed(id, internalFailure(error));
      return;
    }
    // An error that escapes the loop is a bug: it must end the worker, which then reports every job it held.
    if (!this.#looping) void this.#loop();
  }

  #answerAtOnce(id: number, job: TokenizeJob | DetokenizeJob): void {
    try {
      this.#events.result(
        id,
        job.kind === "tokenize" ? this.#tokenize(job) : this.#detokenize(job),
      );
    } catch (error) {
      this.#events.failed(id, internalFailure(error));
    }
  }

  #tokenize({ text, addSpecial, withPieces }: TokenizeJob): Result {
    const { tokenizer } = this.#workload;
    const { ids } = tokenizer.encode(text, { addSpecial });
    const pieces = withPieces ? tokenizer.pieces(ids) : undefined;
    return { kind: "tokenize", ids: new Int32Array(ids), pieces };
  }

  #detokenize({ ids }: DetokenizeJob): Result {
    const { vocabSize } = this.#workload.tokenizer;
    // Tables are often padded past the tokenizer's own tokens.
    const unnamed = ids.findIndex((id) => id >= vocabSize);
    if (unnamed !== -1) {
      const message = `tokens[${unnamed}] is ${ids[unnamed]}, an id without text: the tokenizer has ${vocabSize}`;
      throw new Failure("invalid", message, `tokens[${unnamed}]`);
    }
    return { kind: "detokenize", text: this.#workload.tokenizer.decode(ids) };
  }

  async #loop(): Promise<void> {
    this.#looping = true;
    let running: RunningBatch<Row> | undefined;
    while (running || !this.#former.idle) {
      // Lets messages in: new jobs may join the batch that is formed next.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const next = this.#start(this.#measured("tokenize", () => this.#former.next()));
      if (running) this.#deliver(running);
      running = this.#ahead ? next : undefined;
      if (next && !this.#ahead) this.#deliver(next);
    }
    this.#looping = false;
  }

  #start(batch: Batch<Row> | undefined): RunningBatch<Row> | undefined {
    if (!batch) return undefined;
    const startedAtMs = performance.now();
    try {
      return { batch, output: this.#compute(batch.rows), startedAtMs };
    } catch (error) {
      this.#runJobByJob(batch, error);
      return undefined;
    }
  }

  #deliver({ batch, output, startedAtMs }: RunningBatch<Row>): void {
    let values: Float32Array;
    try {
      values = this.#measured("read vectors", () => output.read());
    } catch (error) {
      this.#runJobByJob(batch, error);
      return;
    }
    // it may have been started while the one before it still ran
    const nowMs = performance.now();
    const tokens = batch.rows.reduce((sum, row) => sum + row.ids.length, 0);
    this.#pace.record(tokens, nowMs - Math.max(startedAtMs, this.#lastDeliveryMs));
    this.#lastDeliveryMs = nowMs;
    // before the answer, after which the one who asked may end this worker
    if (this.#account) this.#events.spent?.(this.#account.take());
    this.#handOut(batch, values);
  }

  #measured<T>(name: string, body: () => T): T {
    return this.#account ? this.#account.measure(name, body) : body();
  }

  /** The time of a forward that is not spent in operations goes into building its graph. */
  #compute(rows: readonly Row[]): PendingValues {
    const account = this.#account;
    if (!account) return this.#workload.start(rows);
    const operations = new TimeAccount();
    const startedAtMs = performance.now();
    const output = mx.clockOperations(operations, () => this.#workload.start(rows));
    account.add("graph", performance.now() - startedAtMs - operations.totalMs);
    for (const { name, ms, times } of operations.entries()) {
      account.add(name === "pool" ? name : `eval ${name}`, ms, times);
    }
    return output;
  }

  /** `values`: [outputs of all rows, width], what the model computed. */
  #handOut(batch: Batch<Row>, values: Float32Array): void {
    const { starts, total } = outputsOf(batch.rows);
    // nothing at all is of any width
    const width = values.length / Math.max(1, total);
    for (const { task, item, row } of batch.uses) {
      if (task.settled) continue;
      task.finishItem(item, values.subarray(starts[row]! * width, starts[row + 1]! * width));
      if (task.done) {
        task.settle();
        this.#events.result(task.id, task.result());
      }
    }
  }

  /** A batch failed: jobs that merely shared it with the culprit still get their answer. */
  #runJobByJob(batch: Batch<Row>, cause: unknown): void {
    const tasks = [...new Set(batch.uses.map((use) => use.task))].filter((task) => !task.settled);
    if (tasks.length === 1) {
      this.#fail(tasks[0]!, internalFailure(cause));
      return;
    }
    for (const task of tasks) {
      const uses = batch.uses.filter((use) => use.task === task);
      const rows = uses.map((use) => batch.rows[use.row]!);
      const alone: Batch<Row> = { rows, uses: uses.map((use, row) => ({ ...use, row })) };
      try {
        this.#handOut(alone, this.#workload.start(rows).read());
      } catch (error) {
        this.#fail(task, internalFailure(error));
      }
    }
  }

  #fail(task: Task<Row>, failure: Failure): void {
    task.settle();
    this.#events.failed(task.id, failure);
  }
}

/** The first output of each row, and behind them the number of all. */
function outputsOf(rows: readonly BatchRow[]) {
  const starts = [0];
  for (const { outputs = 1 } of rows) starts.push(starts.at(-1)! + outputs);
  return { starts, total: starts.at(-1)! };
}

function internalFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("internal", `inference failed: ${reasonOf(error)}`);
}
