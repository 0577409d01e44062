/** Where the rows of a batch begin and end, and which of their tokens are keys. */
export interface RowLengths {
  /** [B] tokens per row; they sum to N. */
  readonly lengths: Int32Array;
  /** [B] leading tokens of each row that attention sees; the rest see and are not seen. Absent: all. */
  readonly attended?: Int32Array | undefined;
}

/**
 * The one batch shape: token rows of different lengths laid end to end. Linear layers, norms and activations run
 * on the N real tokens and never on padding; only attention and pooling know where rows begin and end.
 */
export interface RaggedBatch extends RowLengths {
  /** [N] token ids. */
  readonly ids: Int32Array;
  /** [N] position of each token within its row, counted from 0. */
  readonly positions: Int32Array;
  /** [N] segment ids; absent: all 0. */
  readonly typeIds?: Int32Array | undefined;
}

/** Tokens of the longest row. */
export function longestRow({ lengths }: RowLengths): number {
  return lengths.reduce((longest, length) => Math.max(longest, length), 0);
}

/** Which keys a query may attend to within its own row. */
export type Mask =
  | { readonly kind: "full" }
  /** Itself and the window - 1 keys before it; without a window all keys before it. */
  | { readonly kind: "causal"; readonly window?: number | undefined }
  /** |q - k| <= radius. */
  | { readonly kind: "window"; readonly radius: number };

/** A token row before batching. */
export interface TokenRow {
  readonly ids: Int32Array;
  readonly typeIds?: Int32Array | undefined;
  /** Leading tokens that attention sees, at least one; absent: all. */
  readonly attended?: number | undefined;
}

export function raggedBatch(rows: readonly TokenRow[]): RaggedBatch {
  const lengths = Int32Array.from(rows, (row) => row.ids.length);
  const attended = rows.some((row) => row.attended !== undefined)
    ? Int32Array.from(rows, (row) => row.attended ?? row.ids.length)
    : undefined;
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const ids = new Int32Array(total);
  const positions = new Int32Array(total);
  const typeIds = rows.some((row) => row.typeIds) ? new Int32Array(total) : undefined;
  let start = 0;
  for (const row of rows) {
    ids.set(row.ids, start);
    if (row.typeIds) typeIds?.set(row.typeIds, start);
    for (let i = 0; i < row.ids.length; i++) positions[start + i] = i;
    start += row.ids.length;
  }
  return { ids, positions, typeIds, lengths, attended };
}
