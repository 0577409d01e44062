import { Failure } from "./failure.ts";
import type { BatchRow, Task } from "./task.ts";

/** One item of a job that waits for the output of `rows[row]`. */
export interface RowUse<Row extends BatchRow> {
  readonly task: Task<Row>;
  readonly item: number;
  readonly row: number;
}

/** Rows of one forward, from any number of jobs. */
export interface Batch<Row extends BatchRow> {
  /** Each different row once; all continue the same prefix, if any. */
  readonly rows: readonly Row[];
  readonly uses: readonly RowUse<Row>[];
}

export interface BatchLimits {
  readonly budgetTokens: number;
  /** Infinity: the token budget alone decides. */
  readonly maxRows: number;
}

export interface FormerEvents<Row extends BatchRow> {
  started(task: Task<Row>): void;
  failed(task: Task<Row>, failure: Failure): void;
}

/**
 * Decides which rows run next. Jobs are served in order of arrival, and a batch is filled across jobs up to a budget
 * of tokens, so that many short requests share one forward and one long list is split over several.
 */
export class BatchFormer<Row extends BatchRow> {
  /** Jobs with rows that are in no batch yet, oldest first. */
  private readonly queue: Task<Row>[] = [];

  constructor(
    private readonly limits: BatchLimits,
    private readonly events: FormerEvents<Row>,
  ) {}

  get idle(): boolean {
    return this.queue.length === 0;
  }

  add(task: Task<Row>): void {
    this.queue.push(task);
  }

  /** The next rows to run; undefined when nothing waits. */
  next(): Batch<Row> | undefined {
    const draft = new BatchDraft<Row>(this.limits);
    while (this.queue.length > 0) {
      const task = this.queue[0]!;
      if (!this.fill(draft, task)) break;
      this.queue.shift();
    }
    return draft.uses.length > 0 ? draft : undefined;
  }

  /** Moves rows of the task into the batch. Returns false when the batch is full and the task has rows left. */
  private fill(draft: BatchDraft<Row>, task: Task<Row>): boolean {
    if (task.aborted) {
      this.events.failed(task, new Failure("cancelled", "the request was cancelled"));
      return true;
    }
    while (!task.allStarted) {
      let row: Row;
      try {
        row = task.peek();
      } catch (error) {
        this.events.failed(task, tokenizeFailure(error));
        return true;
      }
      const firstRow = task.waiting;
      if (!draft.tryAdd(row, task)) return false;
      if (firstRow) this.events.started(task);
    }
    return true;
  }
}

function tokenizeFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure(
    "internal",
    `tokenizing failed: ${error instanceof Error ? error.message : error}`,
  );
}

class BatchDraft<Row extends BatchRow> implements Batch<Row> {
  readonly rows: Row[] = [];
  readonly uses: RowUse<Row>[] = [];
  private tokens = 0;
  private readonly rowsByHash = new Map<number, number[]>();

  constructor(private readonly limits: BatchLimits) {}

  /** Takes the task's next row, unless the batch has no room for it. A row alone always fits. */
  tryAdd(row: Row, task: Task<Row>): boolean {
    const hash = Bun.hash.xxHash32(row.ids);
    const sameHash = this.rowsByHash.get(hash) ?? [];
    let index = sameHash.find((candidate) => sameRow(this.rows[candidate]!, row));
    if (index === undefined) {
      const { budgetTokens, maxRows } = this.limits;
      const full = this.tokens + row.ids.length > budgetTokens || this.rows.length >= maxRows;
      const [first] = this.rows;
      if (first && (full || first.prefix !== row.prefix)) return false;
      index = this.rows.push(row) - 1;
      this.tokens += row.ids.length;
      this.rowsByHash.set(hash, [...sameHash, index]);
    }
    this.uses.push({ task, item: task.advance(), row: index });
    return true;
  }
}

function sameRow(a: BatchRow, b: BatchRow): boolean {
  return (
    a.promptTokens === b.promptTokens &&
    a.prefix === b.prefix &&
    sameValues(a.ids, b.ids) &&
    sameValues(a.typeIds, b.typeIds)
  );
}

function sameValues(a: Int32Array | undefined, b: Int32Array | undefined): boolean {
  return a === b || (a?.length === b?.length && !!a?.every((value, i) => value === b?.[i]));
}
