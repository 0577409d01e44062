import { Failure } from "../worker/failure.ts";
import type { EmbedResult, Result } from "../worker/job.ts";
import type { RenderOptions, VectorOptions } from "./dialect.ts";
import { JsonBuffer, requireFinite } from "./json-buffer.ts";

/** What to render for an embed job, checked to be printable; anything else is our fault. */
export function embedAnswer(
  result: Result,
  options: RenderOptions,
): { readonly result: EmbedResult; readonly options: VectorOptions } {
  if (result.kind !== "embed" || options.kind !== "vectors") {
    throw new Failure("internal", `the model answered "${result.kind}" instead of vectors`);
  }
  requireFinite(result.vectors, "a vector");
  return { result, options };
}

/** Calls `write` for every item with the rows of `vectors` that are its own: [first, first + rows). */
export function eachItem(
  result: EmbedResult,
  write: (item: number, first: number, rows: number) => void,
): void {
  let first = 0;
  for (let item = 0; item < result.tokens.length; item++) {
    const rows = result.rowsPerItem?.[item] ?? 1;
    write(item, first, rows);
    first += rows;
  }
}

/** `[[…],[…]]`: one inner array per row of [first, first + rows). */
export function writeRows(
  json: JsonBuffer,
  result: EmbedResult,
  first: number,
  rows: number,
): void {
  const { vectors, dim } = result;
  json.raw("[");
  for (let row = first; row < first + rows; row++) {
    if (row > first) json.raw(",");
    json.floats(vectors, row * dim, (row + 1) * dim);
  }
  json.raw("]");
}

/** The rows of an item as one base64 string, with their `shape` where an item may have several. */
export function writeBase64(
  json: JsonBuffer,
  result: EmbedResult,
  first: number,
  rows: number,
): void {
  const { vectors, dim } = result;
  json.base64(vectors, first * dim, (first + rows) * dim);
  if (result.rowsPerItem) json.raw(`,"shape":[${rows},${dim}]`);
}
