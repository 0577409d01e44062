import type { EmbeddingModel, EmbedRow } from "../pipeline/embedder.ts";
import { Failure } from "./failure.ts";
import { unpackItems } from "./items.ts";
import type { EmbedItem, EmbedJob, EmbedResult } from "./job.ts";

/** What the worker needs of a model. */
export type RunnableModel = Pick<
  EmbeddingModel,
  "dim" | "maxLength" | "tokenizer" | "tokenize" | "start" | "finish"
>;

/** An embedding job on its way through the worker: which items are tokenized, started and done. */
export class EmbedTask {
  /** It has been answered, with a result or a failure; what is left of it is dropped. */
  settled = false;
  private readonly items: readonly EmbedItem[];
  private readonly rows: (EmbedRow | undefined)[];
  private readonly vectors: Float32Array<ArrayBuffer>;
  private readonly tokens: Int32Array<ArrayBuffer>;
  private readonly dim: number;
  private nextItem = 0;
  private pendingItems: number;
  private truncated = 0;

  constructor(
    readonly id: number,
    private readonly job: EmbedJob,
    private readonly model: RunnableModel,
    private readonly abort: Int32Array<SharedArrayBuffer>,
  ) {
    this.items = unpackItems(job.items);
    this.rows = new Array(this.items.length);
    this.pendingItems = this.items.length;
    this.dim = job.dimensions ?? model.dim;
    this.vectors = new Float32Array(this.items.length * this.dim);
    this.tokens = new Int32Array(this.items.length);
  }

  /** The caller is gone or timed out: what has not started need not run. */
  get aborted(): boolean {
    return Atomics.load(this.abort, 0) !== 0;
  }

  /** No row of it is in a batch yet. */
  get waiting(): boolean {
    return this.nextItem === 0;
  }

  get allStarted(): boolean {
    return this.settled || this.nextItem === this.items.length;
  }

  get done(): boolean {
    return this.pendingItems === 0;
  }

  /**
   * The next row to run, tokenized on demand so that a long list never holds up the batch before it. A job that
   * refuses truncation is tokenized whole first: one item too long fails it before any row runs (throws Failure).
   */
  peek(): EmbedRow {
    if (this.waiting && !this.job.truncate) this.items.forEach((_, i) => this.row(i));
    return this.row(this.nextItem);
  }

  /** Takes the row that `peek` showed; returns its item number. */
  advance(): number {
    return this.nextItem++;
  }

  /** `raw`: the vector of one item as the module chain leaves it before normalization. */
  finishItem(item: number, raw: Float32Array): void {
    const { dimensions, normalize } = this.job;
    this.vectors.set(this.model.finish(raw, { dimensions, normalize }), item * this.dim);
    this.rows[item] = undefined;
    this.pendingItems--;
  }

  result(): EmbedResult {
    const { vectors, dim, tokens, truncated } = this;
    return { kind: "embed", vectors, dim, tokens, truncated };
  }

  private row(item: number): EmbedRow {
    return (this.rows[item] ??= this.tokenize(item));
  }

  private tokenize(item: number): EmbedRow {
    const { promptName, instruction, truncate } = this.job;
    const row = this.model.tokenize(this.items[item]!, { promptName, instruction });
    if (row.truncated && !truncate) throw this.tooLong(item);
    if (row.truncated) this.truncated++;
    this.tokens[item] = row.ids.length;
    return row;
  }

  private tooLong(item: number): Failure {
    const { name, isList } = this.job.field;
    const field = isList ? `${name}[${item}]` : name;
    const message =
      `${field} is too large: it exceeds maximum context length of ${this.model.maxLength} tokens. ` +
      `Shorten it, or allow truncation ("truncate": true).`;
    return new Failure("invalid", message, field);
  }
}
