import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { kernelsOn } from "./kernels.ts";
import type { LayerNorm } from "./norms.ts";

/** [N] int32 indices -> [N, width]. Indices must lie within the table: mlx does not check them. */
interface Embedding {
  (indices: Tensor): Tensor;
  /** [rows, width]; undefined where it stays quantised. */
  readonly table?: Tensor;
}

/** A look-up in `<name>.weight` [rows, width]. Of a table that stays quantised only the rows found are de-quantised. */
export function embedding(weights: Weights, name: string, rows: number, width: number): Embedding {
  const table = weights.takeTable(`${name}.weight`, [rows, width]);
  if (table instanceof mx.Tensor) {
    return Object.assign((indices: Tensor) => mx.take(table, indices, 0), { table });
  }
  const inFloat32 = weights.computeDtype === "float32";
  return (indices) => {
    const found = mx.dequantizeRows(table, indices);
    return inFloat32 ? mx.astype(found, "float32") : found;
  };
}

/** As many vectors of indices as there are embeddings, each [N] or [1] for all tokens -> [N, width]. */
type EmbeddingSum = (...indices: readonly Tensor[]) => Tensor;

/** norm(embedding + embedding + …), at most three of them, added up in their order. */
export function normedEmbeddings(embeddings: readonly Embedding[], norm: LayerNorm): EmbeddingSum {
  return (...indices) => {
    const lookUps = embeddings.flatMap(({ table }, i) =>
      table ? [{ table, indices: indices[i]! }] : [],
    );
    const areDense = lookUps.length === embeddings.length;
    const kernels = areDense ? kernelsOn(lookUps[0]!.table) : undefined;
    if (kernels) return kernels.embed(lookUps, norm.parameters);
    const embedded = embeddings.map((embed, i) => embed(indices[i]!));
    return norm(embedded.reduce((sum, next) => mx.add(sum, next)));
  };
}
