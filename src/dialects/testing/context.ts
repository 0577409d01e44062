import { Failure } from "../../worker/failure.ts";
import type { EmbedResult, ModelInfo } from "../../worker/job.ts";
import type { ParseContext } from "../dialect.ts";

export const INFO: ModelInfo = {
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
  weightBytes: 4096,
};

export const CONTEXT: ParseContext = {
  model: { id: "tiny", names: ["tiny", "acme/tiny"], kind: "embedding", info: INFO },
  truncate: true,
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

export function jsonOf(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(bytes));
}
