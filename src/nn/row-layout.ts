import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { RowLengths } from "./ragged.ts";

/** Rows of similar length, to be laid side by side as one dense block. */
export interface Bucket {
  /** [b] rows of the batch, longest first. */
  readonly rows: Int32Array;
  /** [b] their lengths. */
  readonly lengths: Int32Array;
  /** [b] leading tokens of each row that attention sees. */
  readonly attended: Int32Array;
  /** Length of the longest row. */
  readonly width: number;
  /** Some row is shorter than `width`. */
  readonly padded: boolean;
}

interface IndexedBucket extends Bucket {
  /** First token of the first row. */
  readonly from: number;
  /** [b * width] token behind each cell; null when the cells are the tokens `from` … in order. */
  readonly cells: Tensor | null;
}

interface Blocks {
  readonly buckets: readonly IndexedBucket[];
  /** [N] cell (bucket after bucket) of each token; null when tokens and cells are in the same order. */
  readonly cellOfToken: Tensor | null;
  /** [B] place (bucket after bucket) of each row; null when that is the order of the batch. */
  readonly placeOfRow: Tensor | null;
}

/** A bucket may be padded by this many cells per row, or by 1/8 of its width if that is more. */
const FREE_PADDING = 8;

/**
 * Turns the N tokens of a ragged batch into dense blocks and back. The index tensors are made once, in the scope
 * of the first use; build one layout per forward and share it between the layers.
 */
export class RowLayout implements RowLengths {
  readonly lengths: Int32Array;
  readonly attended: Int32Array | undefined;
  #blocks: Blocks | undefined;

  /** Throws RangeError unless each row has at least one token that attention sees. */
  constructor({ lengths, attended }: RowLengths) {
    if (lengths.length === 0) throw new RangeError("a batch needs at least one row");
    if (lengths.some((length) => length < 1)) {
      throw new RangeError("a row needs at least one token");
    }
    if (
      attended &&
      !lengths.every((length, row) => attended[row]! >= 1 && attended[row]! <= length)
    ) {
      throw new RangeError("attention must see at least one token of a row, and none behind it");
    }
    this.lengths = lengths;
    this.attended = attended;
  }

  get buckets(): readonly Bucket[] {
    return this.#dense.buckets;
  }

  get #dense(): Blocks {
    return (this.#blocks ??= blocksOf(this));
  }

  /** [N, W] -> one [b, width, W] per bucket. Cells behind the end of a row repeat the row's last token. */
  blocks(x: Tensor): Tensor[] {
    const [total, features] = [x.shape[0]!, x.shape[1]!];
    return this.#dense.buckets.map(({ cells, from, rows, width }) => {
      const count = rows.length * width;
      const flat = cells
        ? mx.take(x, cells, 0)
        : count === total
          ? x
          : mx.slice(x, [from, 0], [from + count, features]);
      // [b * width, W] -> [b, width, W]
      return mx.reshape(flat, [rows.length, width, features]);
    });
  }

  /** One [b, width, W] per bucket -> [N, W]: the inverse of `blocks`. */
  tokens(blocks: readonly Tensor[]): Tensor {
    // [b, width, W] -> [b * width, W]
    const cells = joined(blocks.map((block) => mx.reshape(block, [-1, block.shape[2]!])));
    const { cellOfToken } = this.#dense;
    return cellOfToken ? mx.take(cells, cellOfToken, 0) : cells;
  }

  /** One [b, W] per bucket -> [B, W], in the order of the batch. */
  rows(perBucket: readonly Tensor[]): Tensor {
    const places = joined(perBucket);
    const { placeOfRow } = this.#dense;
    return placeOfRow ? mx.take(places, placeOfRow, 0) : places;
  }
}

/** [B] first token of each row. */
export function rowStarts(lengths: Int32Array): Int32Array {
  const starts = new Int32Array(lengths.length);
  for (let row = 1; row < lengths.length; row++) {
    starts[row] = starts[row - 1]! + lengths[row - 1]!;
  }
  return starts;
}

function blocksOf(rows: RowLengths): Blocks {
  const { lengths } = rows;
  const starts = rowStarts(lengths);
  const buckets = groupByLength(rows).map((bucket) => indexed(bucket, starts));
  const padded = buckets.some((bucket) => bucket.padded);
  return {
    buckets,
    cellOfToken: indexTensor(cellOfToken(buckets, starts), padded),
    placeOfRow: indexTensor(placeOfRow(buckets, lengths.length), false),
  };
}

function groupByLength({ lengths, attended = lengths }: RowLengths): Bucket[] {
  const longestFirst = Int32Array.from(lengths.keys()).sort(
    (a, b) => lengths[b]! - lengths[a]! || a - b,
  );
  const buckets: Bucket[] = [];
  for (let first = 0; first < longestFirst.length;) {
    const width = lengths[longestFirst[first]!]!;
    const shortest = width - Math.max(FREE_PADDING, width >> 3);
    let end = first + 1;
    while (end < longestFirst.length && lengths[longestFirst[end]!]! >= shortest) end++;
    const rows = longestFirst.slice(first, end);
    const rowLengths = rows.map((row) => lengths[row]!);
    buckets.push({
      rows,
      lengths: rowLengths,
      attended: rows.map((row) => attended[row]!),
      width,
      padded: rowLengths.at(-1)! < width,
    });
    first = end;
  }
  return buckets;
}

function indexed(bucket: Bucket, starts: Int32Array): IndexedBucket {
  const { rows, lengths, width, padded } = bucket;
  const from = starts[rows[0]!]!;
  const adjacent = rows.every((row, i) => starts[row] === from + i * width);
  if (adjacent && !padded) return { ...bucket, from, cells: null };
  const cells = new Int32Array(rows.length * width);
  rows.forEach((row, i) => {
    const last = lengths[i]! - 1;
    for (let t = 0; t < width; t++) cells[i * width + t] = starts[row]! + Math.min(t, last);
  });
  return { ...bucket, from, cells: mx.fromInt32(cells, [cells.length]) };
}

function cellOfToken(buckets: readonly Bucket[], starts: Int32Array): Int32Array {
  const total = buckets.reduce((sum, { lengths }) => lengths.reduce((a, b) => a + b, sum), 0);
  const cells = new Int32Array(total);
  let base = 0;
  for (const { rows, lengths, width } of buckets) {
    rows.forEach((row, i) => {
      for (let t = 0; t < lengths[i]!; t++) cells[starts[row]! + t] = base + i * width + t;
    });
    base += rows.length * width;
  }
  return cells;
}

function placeOfRow(buckets: readonly Bucket[], rowCount: number): Int32Array {
  const places = new Int32Array(rowCount);
  let place = 0;
  for (const { rows } of buckets) for (const row of rows) places[row] = place++;
  return places;
}

/** null where 0, 1, 2 … would pick everything as it is; `partial`: there is more to pick from than is picked. */
function indexTensor(indices: Int32Array, partial: boolean): Tensor | null {
  const inOrder = indices.every((index, i) => index === i);
  return inOrder && !partial ? null : mx.fromInt32(indices, [indices.length]);
}

function joined(parts: readonly Tensor[]): Tensor {
  return parts.length === 1 ? parts[0]! : mx.concatenate([...parts], 0);
}
