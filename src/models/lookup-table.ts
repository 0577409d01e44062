import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { embedding, normedEmbeddings } from "../nn/embedding.ts";
import type { LayerNorm } from "../nn/norms.ts";

/** [N] indices -> [N, width]. Throws RangeError for an index that is not a row of the table. */
export type LookupTable = (indices: Int32Array) => Tensor;

/** A look-up in `<name>.weight` [rows, width]. */
export function lookupTable(
  weights: Weights,
  name: string,
  rows: number,
  width: number,
): LookupTable {
  const table = embedding(weights, name, rows, width);
  return (indices) => {
    requireRows(indices, rows, name);
    return table(indices);
  };
}

export interface TableShape {
  readonly name: string;
  readonly rows: number;
}

/**
 * As many vectors of indices as tables, each [N] or [1] for all tokens -> [N, width]. Throws RangeError for an index
 * that is not a row of its table.
 */
export type NormedTables = (...indices: readonly Int32Array[]) => Tensor;

/** norm(table + table + …) of look-ups in `<name>.weight` [rows, width] each. */
export function normedTables(
  weights: Weights,
  tables: readonly TableShape[],
  width: number,
  norm: LayerNorm,
): NormedTables {
  const embeddings = tables.map(({ name, rows }) => embedding(weights, name, rows, width));
  const embed = normedEmbeddings(embeddings, norm);
  return (...indices) => {
    tables.forEach(({ name, rows }, i) => requireRows(indices[i]!, rows, name));
    return embed(...indices);
  };
}

/**
 * mlx does not check indices: one outside of the table would read foreign memory. Loading and tokenizing refuse what
 * a file or a request states wrong, each in its own words; this stands in front of every table all the same.
 */
export function requireRows(indices: Int32Array, rows: number, name: string): void {
  const stray = indices.find((index) => index < 0 || index >= rows);
  if (stray === undefined) return;
  throw new RangeError(`${stray} is not one of the ${rows} rows of "${name}"`);
}
