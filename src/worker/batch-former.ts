import { reasonOf } from "../native/thrown.ts";
import { BatchDraft, type Batch } from "./batch.ts";
import { Failure } from "./failure.ts";
import type { Pace } from "./pace.ts";
import type { BatchRow, Task } from "./task.ts";

export interface BatchLimits {
  readonly budgetTokens: number;
  /** Infinity: the token budget alone decides. */
  readonly maxRows: number;
  /** Most tokens of one job; absent: no limit. */
  readonly jobTokens?: number | undefined;
}

interface FormerEvents<Row extends BatchRow> {
  started(task: Task<Row>): void;
  failed(task: Task<Row>, failure: Failure): void;
}

/** A job of up to this many tokens is interactive: somebody waits for it. */
const INTERACTIVE_TOKENS = 512;

/** A bulk batch is cut to about this long, so that what arrives meanwhile does not wait for long. */
const SLICE_MS = 150;

/** Below this a slice would waste the machine. */
const MIN_SLICE_TOKENS = 256;

/** Tokens of a bulk batch: what fits into a slice at the present pace, within the budget. */
export function bulkBatchTokens({ budgetTokens }: BatchLimits, pace: Pace): number {
  const slice = pace.tokensWithin(SLICE_MS) ?? budgetTokens;
  return Math.min(budgetTokens, Math.max(MIN_SLICE_TOKENS, slice));
}

/** Interactive batches that may run one after the other while a bulk job waits. */
const MAX_OVERTAKES = 2;

/**
 * Bulk jobs that take turns. The others wait in the queue, where admission counts them: were all to start, they would
 * slow one another down until each ran into its timeout.
 */
const BULK_TURNS = 4;

/**
 * Decides which rows run next. A batch is filled across jobs up to a budget of tokens. Small jobs have a lane of their
 * own that goes first; a bulk job is overtaken a bounded number of times and runs in slices, taking turns with a few
 * other bulk jobs. Within a lane jobs are served in order of arrival.
 */
export class BatchFormer<Row extends BatchRow> {
  /** Jobs with rows that are in no batch yet. */
  readonly #interactive: Task<Row>[] = [];
  readonly #bulk: Task<Row>[] = [];
  #overtakes = 0;
  readonly #limits: BatchLimits;
  readonly #pace: Pace;
  readonly #events: FormerEvents<Row>;

  constructor(limits: BatchLimits, pace: Pace, events: FormerEvents<Row>) {
    this.#limits = limits;
    this.#pace = pace;
    this.#events = events;
  }

  get idle(): boolean {
    return this.#interactive.length === 0 && this.#bulk.length === 0;
  }

  add(task: Task<Row>): void {
    const lane = task.estimatedTokens <= INTERACTIVE_TOKENS ? this.#interactive : this.#bulk;
    lane.push(task);
  }

  /** The next rows to run; undefined when nothing waits. */
  next(): Batch<Row> | undefined {
    const draft = this.#draft();
    return draft.uses.length > 0 ? draft : undefined;
  }

  #draft(): BatchDraft<Row> {
    const bulkTurn = this.#bulk.length > 0 && this.#overtakes >= MAX_OVERTAKES;
    if (this.#interactive.length > 0 && !bulkTurn) {
      const draft = this.#fill(this.#interactive, this.#limits);
      // all of the lane may have been cancelled or refused
      if (draft.uses.length > 0 || this.#bulk.length === 0) {
        this.#overtakes = this.#bulk.length > 0 ? this.#overtakes + 1 : 0;
        return draft;
      }
    }
    this.#overtakes = 0;
    const draft = this.#fill(this.#bulk, {
      ...this.#limits,
      budgetTokens: bulkBatchTokens(this.#limits, this.#pace),
    });
    // One that has rows left goes behind the others that take turns.
    const [unfinished] = this.#bulk.splice(0, 1);
    if (unfinished) this.#bulk.splice(BULK_TURNS - 1, 0, unfinished);
    return draft;
  }

  /** A batch from the jobs at the front of the lane; those that have no rows left leave it. */
  #fill(lane: Task<Row>[], limits: BatchLimits): BatchDraft<Row> {
    const draft = new BatchDraft<Row>(limits);
    for (let task = lane[0]; task && this.#take(draft, task); task = lane[0]) lane.shift();
    return draft;
  }

  /** Moves rows of the task into the batch. Returns false when the batch is full and the task has rows left. */
  #take(draft: BatchDraft<Row>, task: Task<Row>): boolean {
    if (task.aborted) {
      this.#events.failed(task, new Failure("cancelled", "the request was cancelled"));
      return true;
    }
    while (!task.allStarted) {
      let row: Row;
      try {
        row = task.peek(this.#limits.jobTokens);
      } catch (error) {
        this.#events.failed(task, tokenizeFailure(error));
        return true;
      }
      const firstRow = task.waiting;
      if (!draft.tryAdd(row, task)) return false;
      if (firstRow) this.#events.started(task);
    }
    return true;
  }
}

function tokenizeFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("internal", `tokenizing failed: ${reasonOf(error)}`);
}
