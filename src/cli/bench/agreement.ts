/** Speeds can only be compared between servers that compute the same. */
import { reasonOf } from "../../native/thrown.ts";
import { embed, rank, type Target } from "./target.ts";

/**
 * Largest difference in a component of a unit vector, or in a score. Wide enough for a server that takes the tanh form
 * of GELU for its erf form (4e-4 on all-MiniLM-L6-v2).
 */
const TOLERANCE = 1e-3;

export interface CosineDistance {
  readonly texts: number;
  readonly mean: number;
  readonly max: number;
}

export interface Agreement {
  readonly target: Target;
  /** From the first target's vectors; 0 for the first one itself. */
  readonly vectorDifference: number;
  /** Of its vectors from the first target's: 1 - cos; only where precision is reduced. */
  readonly cosineDistance?: CosineDistance | undefined;
  /** From the scores of the first one that ranks; undefined: this one does not. */
  readonly scoreDifference?: number | undefined;
  /** Why it does not rank. */
  readonly doesNotRank?: string | undefined;
}

/**
 * Compares every target's vectors with those of the first.
 * @throws Error one line that names the target, when one does not answer or answers other vectors
 */
export async function vectorAgreement(
  targets: readonly Target[],
  texts: readonly string[],
): Promise<Agreement[]> {
  const found: Agreement[] = [];
  let reference: number[][] | undefined;
  for (const target of targets) {
    const vectors = await embed(target, texts);
    reference ??= vectors;
    const difference = largestDifference(reference.flat(), vectors.flat());
    if (!(difference <= TOLERANCE) && !target.reducedPrecision) {
      throw new Error(
        `target ${target.name} answers other vectors than ${targets[0]?.name}: ${describe(difference)}; ` +
          "give both the same model, the same limit of tokens and the same pooling",
      );
    }
    const cosineDistance = target.reducedPrecision
      ? cosineDistances(reference, vectors)
      : undefined;
    found.push({ target, vectorDifference: difference, cosineDistance });
  }
  return found;
}

/**
 * Adds which targets rank, and compares their scores with those of the first that does. A server may answer logits
 * where another answers their sigmoid.
 * @throws Error one line that names the target, when one answers other scores
 */
export async function scoreAgreement(
  agreements: readonly Agreement[],
  texts: readonly string[],
): Promise<Agreement[]> {
  const [query = "", ...documents] = texts;
  const found: Agreement[] = [];
  let first: { readonly name: string; readonly scores: readonly number[] } | undefined;
  for (const agreement of agreements) {
    const { target } = agreement;
    const answer = await rank(target, query, documents).catch(reasonOf);
    if (typeof answer === "string") {
      found.push({ ...agreement, doesNotRank: answer });
      continue;
    }
    first ??= { name: target.name, scores: answer };
    const difference = scoreDifference(first.scores, answer);
    if (!(difference <= TOLERANCE) && !target.reducedPrecision) {
      throw new Error(
        `target ${target.name} answers other scores than ${first.name}: ${describe(difference)}; give both the same reranker`,
      );
    }
    found.push({ ...agreement, scoreDifference: difference });
  }
  return found;
}

function cosineDistances(one: readonly number[][], other: readonly number[][]): CosineDistance {
  const distances = one.map((vector, i) => 1 - cosine(vector, other[i] ?? []));
  const sum = distances.reduce((a, b) => a + b, 0);
  return { texts: one.length, mean: sum / one.length, max: Math.max(...distances) };
}

function cosine(one: readonly number[], other: readonly number[]): number {
  const product = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, x, i) => sum + x * (b[i] ?? Number.NaN), 0);
  return product(one, other) / Math.sqrt(product(one, one) * product(other, other));
}

function scoreDifference(one: readonly number[], other: readonly number[]): number {
  return Math.min(
    largestDifference(one, other),
    largestDifference(one, other.map(sigmoid)),
    largestDifference(one.map(sigmoid), other),
  );
}

function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}

/** NaN for lists of different length. */
function largestDifference(one: readonly number[], other: readonly number[]): number {
  if (one.length !== other.length) return Number.NaN;
  return one.reduce(
    (largest, x, i) => Math.max(largest, Math.abs(x - (other[i] ?? Number.NaN))),
    0,
  );
}

function describe(difference: number): string {
  return Number.isNaN(difference)
    ? "of another size"
    : `they differ by up to ${difference.toExponential(1)}`;
}
