/** What sentence-transformers' `maxsim` gives a document without vectors: less than any that has some. */
const WITHOUT_VECTORS = -1e9;

interface MaxSim {
  /** Over the query's vectors, the sum of their largest dot product with a vector of the document. */
  readonly sum: number;
  /** The same, averaged over the query's vectors. */
  readonly mean: number;
}

/**
 * How well a document answers a query (Khattab & Zaharia 2020, eq. 3), summed in f64.
 *
 * @param query [q, dim]
 * @param document [d, dim]
 */
export function maxSim(query: Float32Array, document: Float32Array, dim: number): MaxSim {
  const rows = Math.max(1, query.length / dim);
  if (document.length === 0) return { sum: WITHOUT_VECTORS, mean: WITHOUT_VECTORS / rows };
  let sum = 0;
  for (let start = 0; start < query.length; start += dim) {
    sum += largestDot(query.subarray(start, start + dim), document);
  }
  return { sum, mean: sum / rows };
}

/** `vector` [dim], `document` [d, dim] with d > 0. */
function largestDot(vector: Float32Array, document: Float32Array): number {
  const dim = vector.length;
  let largest = -Infinity;
  for (let start = 0; start < document.length; start += dim) {
    let dot = 0;
    for (let i = 0; i < dim; i++) dot += vector[i]! * document[start + i]!;
    if (dot > largest) largest = dot;
  }
  return largest;
}
