import * as mx from "../../ffi/index.ts";
import type { Distances, Tensor } from "../../ffi/index.ts";

/**
 * Scores of contents with distances by mlx's own operations: queries and keys [b, heads, width, headDim] ->
 * [b, heads, width, width].
 */
export function distanceScores(distances: Distances, queries: Tensor, keys: Tensor): Tensor {
  const [heads, width] = [queries.shape[1]!, queries.shape[2]!];
  const middle = (distances.rows.length - 1) / 2;
  // From a query to its keys distances rise, from a key to its queries they fall.
  const rising = distances.rows.slice(middle - width + 1, middle + width);
  const ofHeads = (table: Tensor, rows: Int32Array) => {
    const taken = mx.take(table, mx.fromInt32(rows, [rows.length]), 0);
    // [2 * width - 1, heads * headDim] -> [1, heads, 2 * width - 1, headDim]
    return mx.transpose(mx.reshape(taken, [1, rows.length, heads, -1]), [0, 2, 1, 3]);
  };
  // [b, heads, queries, keys]
  const contentToDistance = scoresOfPairs(queries, ofHeads(distances.keys, rising));
  // [b, heads, keys, queries]
  const distanceToContent = scoresOfPairs(keys, ofHeads(distances.queries, rising.toReversed()));
  return mx.add(contentToDistance, mx.transpose(distanceToContent, [0, 1, 3, 2]));
}

/**
 * Scores of each token of a block with the distances to all of them: tokens [b, heads, width, headDim] and distances
 * [1, heads, 2 * width - 1, headDim], of which the last token meets the first ones -> [b, heads, width, width].
 */
function scoresOfPairs(tokens: Tensor, distances: Tensor): Tensor {
  const [b, heads, width] = [tokens.shape[0]!, tokens.shape[1]!, tokens.shape[2]!];
  const columns = 2 * width - 1;
  const scores = mx.matmul(tokens, mx.transpose(distances, [0, 1, 3, 2]));
  if (width === 1) return scores;
  // Token i has the columns from width - 1 - i on: in the numbers of all tokens end to end, each begins `columns - 1`
  // behind the one before it.
  const flat = mx.reshape(scores, [b, heads, width * columns]);
  const end = width - 1 + width * (columns - 1);
  const shifted = mx.slice(flat, [0, 0, width - 1], [b, heads, end]);
  // [b, heads, width * (columns - 1)] -> [b, heads, width, columns - 1] -> [b, heads, width, width]
  const perToken = mx.reshape(shifted, [b, heads, width, columns - 1]);
  return mx.slice(perToken, [0, 0, 0, 0], [b, heads, width, width]);
}
