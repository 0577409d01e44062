import type { BatchLimits } from "./batch-former.ts";
import type { BatchRow, Task } from "./task.ts";

/** One item of a job that waits for the output of `rows[row]`. */
interface RowUse<Row extends BatchRow> {
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

/** A batch that still takes rows. */
export class BatchDraft<Row extends BatchRow> implements Batch<Row> {
  readonly rows: Row[] = [];
  readonly uses: RowUse<Row>[] = [];
  #tokens = 0;
  readonly #rowsByHash = new Map<number, number[]>();
  readonly #limits: BatchLimits;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  /** Takes the task's next row, unless the batch has no room for it. A row alone always fits. */
  tryAdd(row: Row, task: Task<Row>): boolean {
    const hash = Bun.hash.xxHash32(row.ids);
    const sameHash = this.#rowsByHash.get(hash) ?? [];
    let index = sameHash.find((candidate) => sameRow(this.rows[candidate]!, row));
    if (index === undefined) {
      const { budgetTokens, maxRows } = this.#limits;
      const full = this.#tokens + row.ids.length > budgetTokens || this.rows.length >= maxRows;
      const [first] = this.rows;
      if (first && (full || first.prefix !== row.prefix)) return false;
      index = this.rows.push(row) - 1;
      this.#tokens += row.ids.length;
      this.#rowsByHash.set(hash, [...sameHash, index]);
    }
    this.uses.push({ task, item: task.advance(), row: index });
    return true;
  }
}

function sameRow(a: BatchRow, b: BatchRow): boolean {
  return (
    a.promptTokens === b.promptTokens &&
    a.prefix === b.prefix &&
    a.attended === b.attended &&
    a.outputs === b.outputs &&
    sameValues(a.ids, b.ids) &&
    sameValues(a.typeIds, b.typeIds) &&
    sameValues(a.kept, b.kept)
  );
}

function sameValues(a: Int32Array | undefined, b: Int32Array | undefined): boolean {
  return a === b || (a?.length === b?.length && !!a?.every((value, i) => value === b?.[i]));
}
