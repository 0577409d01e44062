import { Failure } from "../../worker/failure.ts";
import type { EmbedderInfo, EmbedResult, RerankerInfo, RerankResult } from "../../worker/job.ts";
import type { ParseContext } from "../dialect.ts";

export const INFO: EmbedderInfo = {
  kind: "embedding",
  family: "bert",
  dim: 8,
  maxLength: 16,
  vocabSize: 1000,
  pooling: "mean",
  normalization: "l2",
  multiVector: false,
  promptNames: ["query", "classify", "passage"],
  device: "cpu",
  storedDtype: "float32",
  loadNotes: [],
  cpuPrecision: "f32",
  batchTokens: 4096,
  sliceTokens: 512,
};

export const CONTEXT: ParseContext = {
  model: { id: "tiny", names: ["tiny", "acme/tiny"], kind: "embedding", info: INFO },
  truncate: true,
  rawScores: false,
};

export const RERANKER_INFO: RerankerInfo = {
  kind: "reranker",
  family: "bert",
  maxLength: 16,
  vocabSize: 500,
  takesInstruction: false,
  device: "cpu",
  storedDtype: "float32",
  loadNotes: [],
  cpuPrecision: "f32",
  batchTokens: 4096,
  sliceTokens: 512,
};

export const RERANK_CONTEXT: ParseContext = {
  model: { id: "judge", names: ["judge", "acme/judge"], kind: "reranker", info: RERANKER_INFO },
  truncate: true,
  rawScores: false,
};

/** The Failure that `action` throws. */
export function failureOf(action: () => unknown): Failure {
  try {
    action();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** Two items of two components each; with `rowsPerItem`, the rows are spread over the items. */
export function result(vectors: number[], rowsPerItem?: number[]): EmbedResult {
  const dim = 2;
  const items = rowsPerItem?.length ?? vectors.length / dim;
  return {
    kind: "embed",
    vectors: Float32Array.from(vectors),
    dim,
    rowsPerItem: rowsPerItem ? Int32Array.from(rowsPerItem) : undefined,
    tokens: new Int32Array(items).fill(3),
    truncated: 0,
  };
}

/** A score per document, each logit ten times its score, three tokens each. */
export function rerankResult(scores: number[]): RerankResult {
  return {
    kind: "rerank",
    scores: Float32Array.from(scores),
    rawScores: Float32Array.from(scores, (score) => 10 * score),
    tokens: new Int32Array(scores.length).fill(3),
    truncated: 0,
  };
}

export function jsonOf(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(bytes));
}
