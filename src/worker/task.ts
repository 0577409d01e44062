import type { CountedRow } from "../pipeline/counted-row.ts";
import type { Result } from "./job.ts";
import { readField } from "./read-field.ts";
import { tooLong, tooManyTokens } from "./too-long.ts";

/** A tokenized item of some job, before batching. */
export interface BatchRow extends CountedRow {
  /** Leading tokens that pooling leaves out. */
  readonly promptTokens?: number | undefined;
  /** The tokens that give an output, for models with one per token; absent: all. */
  readonly kept?: Int32Array | undefined;
  /** Outputs that the row gives; absent: 1. */
  readonly outputs?: number | undefined;
  /** Rows that continue the same beginning carry the same object; only such rows share a batch. */
  readonly prefix?: object | undefined;
}

interface TaskSize {
  readonly items: number;
  /** A guess before tokenizing, good enough to tell a query from a bulk load. */
  readonly estimatedTokens: number;
}

/** How far a task tokenizes ahead of what runs: enough to put rows of similar length together. */
const WINDOW_ITEMS = 64;
const WINDOW_TOKENS = 4096;

/**
 * A job on its way through the worker: which items are tokenized, started and done. Items are tokenized a window at
 * a time, so that a long list never holds up the batch before it, and leave the window longest first.
 */
export abstract class Task<Row extends BatchRow = BatchRow> {
  readonly estimatedTokens: number;
  protected readonly count: number;
  /** [items] tokens that count as used, of the items that are tokenized. */
  protected readonly tokens: Int32Array<ArrayBuffer>;
  /** Items that were cut to fit the model's limit. */
  protected truncated = 0;
  readonly #rows: (Row | undefined)[];
  readonly #abort: Int32Array;
  /** Items that are tokenized and not started, longest first. */
  #window: number[] = [];
  #windowEnd = 0;
  #started = 0;
  #pendingItems: number;
  #answered = false;
  readonly #truncate: boolean;

  /**
   * @param abort one Int32, non-zero once nobody waits for the answer
   * @param truncate over-long items may be cut; otherwise one of them fails the job as a whole, before any item runs
   */
  constructor(
    readonly id: number,
    abort: SharedArrayBuffer,
    { items, estimatedTokens }: TaskSize,
    truncate: boolean,
  ) {
    this.#truncate = truncate;
    this.#abort = new Int32Array(abort);
    this.#rows = new Array(items);
    this.count = items;
    this.tokens = new Int32Array(items);
    this.#pendingItems = items;
    this.estimatedTokens = estimatedTokens;
  }

  /** Throws UnusableText when the item can't be read. */
  protected abstract tokenize(item: number): Row;
  /** What the item is called in the request. */
  protected abstract fieldOf(item: number): string;
  /** Keeps what the model computed for an item, [outputs of its row, width]. The array is only lent. */
  protected abstract store(item: number, output: Float32Array): void;
  /** The answer, once `done`. */
  abstract result(): Result;
  /** Frees what the task holds beside its rows. */
  protected release(): void {}

  /** The caller is gone or timed out: what has not started need not run. */
  get aborted(): boolean {
    return Atomics.load(this.#abort, 0) !== 0;
  }

  /** It has its result or failure; what is left of it is dropped. */
  get settled(): boolean {
    return this.#answered;
  }

  /** No row of it is in a batch yet. */
  get waiting(): boolean {
    return this.#started === 0;
  }

  get allStarted(): boolean {
    return this.#answered || this.#started === this.count;
  }

  get done(): boolean {
    return this.#pendingItems === 0;
  }

  /**
   * The next row to run.
   * @param maxTokens most tokens of the whole job; with a limit none of its items runs before all are counted
   * @throws Failure("invalid") naming the item that can't be read, is too long, or takes the job over `maxTokens`
   */
  peek(maxTokens = Infinity): Row {
    if (this.waiting && (!this.#truncate || maxTokens < Infinity)) this.#tokenizeAll(maxTokens);
    if (this.#window.length === 0) this.#fillWindow();
    return this.#row(this.#window[0]!);
  }

  /** Takes the row that `peek` showed; returns its item number. */
  advance(): number {
    this.#started++;
    return this.#window.shift()!;
  }

  finishItem(item: number, output: Float32Array): void {
    this.store(item, output);
    this.#rows[item] = undefined;
    this.#pendingItems--;
  }

  settle(): void {
    if (!this.#answered) this.release();
    this.#answered = true;
  }

  #tokenizeAll(maxTokens: number): void {
    let tokens = 0;
    for (let item = 0; item < this.count; item++) {
      this.#row(item);
      tokens += this.tokens[item]!;
      if (tokens > maxTokens) throw tooManyTokens(this.fieldOf(item), maxTokens);
    }
  }

  #fillWindow(): void {
    const first = this.#windowEnd;
    let tokens = 0;
    while (
      this.#windowEnd < this.count &&
      this.#windowEnd - first < WINDOW_ITEMS &&
      tokens < WINDOW_TOKENS &&
      (this.#windowEnd === first || !this.aborted)
    ) {
      tokens += this.#row(this.#windowEnd++).ids.length;
    }
    const items = Array.from({ length: this.#windowEnd - first }, (_, i) => first + i);
    this.#window = items.sort((a, b) => this.#row(b).ids.length - this.#row(a).ids.length);
  }

  #row(item: number): Row {
    return (this.#rows[item] ??= this.#readable(item));
  }

  #readable(item: number): Row {
    const row = readField(this.fieldOf(item), () => this.tokenize(item));
    if (row.truncated && !this.#truncate) throw tooLong(this.fieldOf(item), row.limit);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.tokens;
    return row;
  }
}
