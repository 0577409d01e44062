import type { Result } from "../worker/job.ts";
import type { RenderOptions, VectorOptions } from "./dialect.ts";
import { MAX_FLOAT_BYTES } from "./float-text.ts";

/** Typical text of one component and its comma, in bytes. */
const FLOAT_TEXT_BYTES = 13;
const BASE64_BYTES = 16 / 3;
const ENTRY_BYTES = 64;
const TOKEN_TEXT_BYTES = 8;

/** About how long the answer will be: decides where it is rendered and how much memory is taken at once. */
export function answerBytes(result: Result, options: RenderOptions): number {
  switch (result.kind) {
    case "embed": {
      const perFloat = floatBytes(options.kind === "vectors" ? options.encoding : "float");
      const slack = result.dim * MAX_FLOAT_BYTES;
      const entries = (result.tokens.length + 4) * ENTRY_BYTES;
      return Math.ceil(result.vectors.length * perFloat) + entries + slack;
    }
    case "rerank": {
      // all scores are sorted, however few of them are answered
      const echoed = options.kind === "ranking" ? (options.echo?.bytes.length ?? 0) : 0;
      return (result.scores.length + 4) * ENTRY_BYTES + echoed;
    }
    case "tokenize":
      return result.ids.length * (result.pieces ? 4 : 1) * TOKEN_TEXT_BYTES + ENTRY_BYTES;
    case "detokenize":
      return result.text.length + ENTRY_BYTES;
  }
}

/** About how long the answer's entry for one vector will be. */
export function vectorBytes(dim: number, encoding: VectorOptions["encoding"]): number {
  return Math.ceil(dim * floatBytes(encoding)) + ENTRY_BYTES;
}

function floatBytes(encoding: VectorOptions["encoding"]): number {
  return encoding === "base64" ? BASE64_BYTES : FLOAT_TEXT_BYTES;
}

/** Sum of the tokens of all items. */
export function totalTokens({ tokens }: { readonly tokens: Int32Array }): number {
  let total = 0;
  for (const count of tokens) total += count;
  return total;
}
