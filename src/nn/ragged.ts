/**
 * The one batch shape: token rows of different lengths laid end to end. Linear layers, norms and activations run
 * on the N real tokens and never on padding; only attention and pooling know where rows begin and end.
 */
export interface RaggedBatch {
  /** [N] token ids. */
  readonly ids: Int32Array;
  /** [N] position of each token within its row, counted from 0. */
  readonly positions: Int32Array;
  /** [N] segment ids; absent: all 0. */
  readonly typeIds?: Int32Array | undefined;
  /** [B] tokens per row; they sum to N. */
  readonly lengths: Int32Array;
}

/** Which keys a query may attend to within its own row. */
export type Mask =
  | { readonly kind: "full" }
  | { readonly kind: "causal" }
  /** |q - k| <= radius. */
  | { readonly kind: "window"; readonly radius: number };

/** A token row before batching. */
export interface TokenRow {
  readonly ids: Int32Array;
  readonly typeIds?: Int32Array | undefined;
}

export function raggedBatch(rows: readonly TokenRow[]): RaggedBatch {
  const lengths = Int32Array.from(rows, (row) => row.ids.length);
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
  return { ids, positions, typeIds, lengths };
}
