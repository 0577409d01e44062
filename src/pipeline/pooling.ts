import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { kernelsOn } from "../nn/kernels.ts";
import { RowLayout, rowStarts } from "../nn/row-layout.ts";

/** How the token vectors of a row become one vector. */
export type PoolingMode = "cls" | "max" | "mean" | "mean_sqrt_len" | "weightedmean" | "lasttoken";

export interface Pooling {
  /** Results are concatenated in this order. */
  readonly modes: readonly PoolingMode[];
  /** false: the prompt's tokens, the leading special included, take no part. Attention still saw them. */
  readonly includePrompt: boolean;
}

export interface PooledRows {
  /** [B] tokens per row. */
  readonly lengths: Int32Array;
  /** [B] leading tokens to leave out, fewer than the row has; read only without `includePrompt`. */
  readonly promptTokens: Int32Array;
}

/** The tokens that take part. */
interface PooledTokens {
  /** [n, H] */
  readonly states: Tensor;
  /** [B] */
  readonly lengths: Int32Array;
  /** [B] tokens left out before the first one; they still count as positions. */
  readonly skipped: Int32Array;
}

/** [N, H] f32 hidden states -> [B, H * modes]. Formulas as in sentence-transformers' Pooling module. */
export function pool(hidden: Tensor, rows: PooledRows, pooling: Pooling): Tensor {
  const skipsPrompt = !pooling.includePrompt && rows.promptTokens.some((count) => count > 0);
  const tokens: PooledTokens = skipsPrompt
    ? withoutPrompts(hidden, rows)
    : { states: hidden, lengths: rows.lengths, skipped: new Int32Array(rows.lengths.length) };
  const parts = pooling.modes.map((mode) => poolBy(mode, tokens));
  return parts.length === 1 ? parts[0]! : mx.concatenate(parts, 1);
}

function withoutPrompts(hidden: Tensor, { lengths, promptTokens }: PooledRows): PooledTokens {
  const kept: number[] = [];
  rowStarts(lengths).forEach((start, row) => {
    for (let token = promptTokens[row]!; token < lengths[row]!; token++) kept.push(start + token);
  });
  return {
    states: mx.take(hidden, mx.fromInt32(Int32Array.from(kept), [kept.length]), 0),
    lengths: lengths.map((length, row) => length - promptTokens[row]!),
    skipped: promptTokens,
  };
}

/** -> [B, H] */
function poolBy(mode: PoolingMode, tokens: PooledTokens): Tensor {
  const { lengths, skipped } = tokens;
  switch (mode) {
    case "cls":
      return tokenOfRow(tokens, () => 0);
    case "lasttoken":
      return tokenOfRow(tokens, (row) => lengths[row]! - 1);
    case "max":
      return maximum(tokens);
    case "mean":
      return weightedSum(tokens, (row) => 1 / lengths[row]!);
    case "mean_sqrt_len":
      return weightedSum(tokens, (row) => 1 / Math.sqrt(lengths[row]!));
    case "weightedmean": {
      // Token t of a row weighs t + 1, prompt tokens counted.
      const first = (row: number) => skipped[row]! + 1;
      const last = (row: number) => skipped[row]! + lengths[row]!;
      const total = (row: number) => ((first(row) + last(row)) * lengths[row]!) / 2;
      return weightedSum(tokens, (row, token) => (first(row) + token) / total(row));
    }
  }
}

function tokenOfRow({ states, lengths }: PooledTokens, tokenIn: (row: number) => number): Tensor {
  const chosen = rowStarts(lengths).map((start, row) => start + tokenIn(row));
  return mx.take(states, mx.fromInt32(chosen, [chosen.length]), 0);
}

function maximum({ states, lengths }: PooledTokens): Tensor {
  const layout = new RowLayout({ lengths });
  // [b, width, H] -> [b, H]; padding repeats a token of the row, so it cannot change the maximum
  return layout.rows(layout.blocks(states).map((block) => mx.max(block, 1)));
}

function weightedSum(
  { states, lengths }: PooledTokens,
  weight: (row: number, token: number) => number,
): Tensor {
  const kernels = kernelsOn(states);
  if (kernels) {
    const weights: number[] = [];
    lengths.forEach((length, row) => {
      for (let token = 0; token < length; token++) weights.push(weight(row, token));
    });
    const ofTokens = mx.fromFloat32(Float32Array.from(weights), [weights.length]);
    return kernels.pool(states, ofTokens, lengths);
  }
  const layout = new RowLayout({ lengths });
  const sums = layout.blocks(states).map((block, i) => {
    const { rows, width } = layout.buckets[i]!;
    const weights = new Float32Array(rows.length * width);
    rows.forEach((row, place) => {
      for (let token = 0; token < lengths[row]!; token++) {
        weights[place * width + token] = weight(row, token);
      }
    });
    // [b, 1, width] · [b, width, H] -> [b, 1, H] -> [b, H]
    const sum = mx.matmul(mx.fromFloat32(weights, [rows.length, 1, width]), block);
    return mx.reshape(sum, [rows.length, block.shape[2]!]);
  });
  return layout.rows(sums);
}
