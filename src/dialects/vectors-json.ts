import { Failure } from "../worker/failure.ts";
import type { EmbedResult, Result } from "../worker/job.ts";
import type { RenderOptions } from "./dialect.ts";
import { MAX_FLOAT_BYTES } from "./float-text.ts";
import { JsonBuffer, requireFinite } from "./json-buffer.ts";

/** Typical text of one component and its comma, in bytes. */
const FLOAT_TEXT_BYTES = 13;
const BASE64_BYTES = 16 / 3;
const ENTRY_BYTES = 64;
const TOKEN_TEXT_BYTES = 8;

/** About how long the answer will be: decides where it is rendered and how much memory is taken at once. */
export function answerBytes(result: Result, options: RenderOptions): number {
  switch (result.kind) {
    case "embed": {
      const perFloat = options.encoding === "base64" ? BASE64_BYTES : FLOAT_TEXT_BYTES;
      const slack = result.dim * MAX_FLOAT_BYTES;
      const entries = (result.tokens.length + 4) * ENTRY_BYTES;
      return Math.ceil(result.vectors.length * perFloat) + entries + slack;
    }
    case "tokenize":
      return result.ids.length * (result.pieces ? 4 : 1) * TOKEN_TEXT_BYTES + ENTRY_BYTES;
    case "detokenize":
      return result.text.length + ENTRY_BYTES;
  }
}

/** The result of an embed job, checked to be printable; anything else is our fault. */
export function embedResult(result: Result): EmbedResult {
  if (result.kind !== "embed") {
    throw new Failure("internal", `the model answered "${result.kind}" instead of vectors`);
  }
  requireFinite(result.vectors);
  return result;
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

/** Sum of the tokens of all items. */
export function totalTokens(result: EmbedResult): number {
  let total = 0;
  for (const tokens of result.tokens) total += tokens;
  return total;
}
