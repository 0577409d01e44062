import type { EmbedRow } from "../pipeline/embedder.ts";
import type { EmbedTask } from "./embed-task.ts";
import { Failure } from "./failure.ts";

/** One item of a job that waits for the vector of `rows[row]`. */
export interface RowUse {
  readonly task: EmbedTask;
  readonly item: number;
  readonly row: number;
}

/** Rows of one forward, from any number of jobs. */
export interface Batch {
  /** Each different row once. */
  readonly rows: readonly EmbedRow[];
  readonly uses: readonly RowUse[];
}

export interface BatchLimits {
  readonly budgetTokens: number;
  /** Infinity: the token budget alone decides. */
  readonly maxRows: number;
}

export interface FormerEvents {
  started(task: EmbedTask): void;
  failed(task: EmbedTask, failure: Failure): void;
}

/**
 * Decides which rows run next. Jobs are served in order of arrival, and a batch is filled across jobs up to a budget
 * of tokens, so that many short requests share one forward and one long list is split over several.
 */
export class BatchFormer {
  /** Jobs with rows that are in no batch yet, oldest first. */
  private readonly queue: EmbedTask[] = [];

  constructor(
    private readonly limits: BatchLimits,
    private readonly events: FormerEvents,
  ) {}

  get idle(): boolean {
    return this.queue.length === 0;
  }

  add(task: EmbedTask): void {
    this.queue.push(task);
  }

  /** The next rows to run; undefined when nothing waits. */
  next(): Batch | undefined {
    const draft = new BatchDraft(this.limits);
    while (this.queue.length > 0) {
      const task = this.queue[0]!;
      if (!this.fill(draft, task)) break;
      this.queue.shift();
    }
    return draft.uses.length > 0 ? draft : undefined;
  }

  /** Moves rows of the task into the batch. Returns false when the batch is full and the task has rows left. */
  private fill(draft: BatchDraft, task: EmbedTask): boolean {
    if (task.aborted) {
      this.events.failed(task, new Failure("cancelled", "the request was cancelled"));
      return true;
    }
    while (!task.allStarted) {
      let row: EmbedRow;
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

class BatchDraft implements Batch {
  readonly rows: EmbedRow[] = [];
  readonly uses: RowUse[] = [];
  private tokens = 0;
  private readonly rowsByHash = new Map<number, number[]>();

  constructor(private readonly limits: BatchLimits) {}

  /** Takes the task's next row, unless the batch has no room for it. A row alone always fits. */
  tryAdd(row: EmbedRow, task: EmbedTask): boolean {
    const hash = Bun.hash.xxHash32(row.ids);
    const sameHash = this.rowsByHash.get(hash) ?? [];
    let index = sameHash.find((candidate) => sameRow(this.rows[candidate]!, row));
    if (index === undefined) {
      const { budgetTokens, maxRows } = this.limits;
      const full = this.tokens + row.ids.length > budgetTokens || this.rows.length >= maxRows;
      if (full && this.rows.length > 0) return false;
      index = this.rows.push(row) - 1;
      this.tokens += row.ids.length;
      this.rowsByHash.set(hash, [...sameHash, index]);
    }
    this.uses.push({ task, item: task.advance(), row: index });
    return true;
  }
}

function sameRow(a: EmbedRow, b: EmbedRow): boolean {
  return (
    a.promptTokens === b.promptTokens &&
    sameValues(a.ids, b.ids) &&
    sameValues(a.typeIds, b.typeIds)
  );
}

function sameValues(a: Int32Array | undefined, b: Int32Array | undefined): boolean {
  return a === b || (a?.length === b?.length && !!a?.every((value, i) => value === b?.[i]));
}
