import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { TableFile } from "../checkpoint/table-file.ts";
import type { Weights } from "../checkpoint/weights.ts";
import { kernelsOn } from "./kernels.ts";
import type { LayerNorm } from "./norms.ts";

/** [N] indices -> [N, width]. Indices must lie within the table: mlx does not check them. */
interface Embedding {
  (indices: Int32Array): Tensor;
  /** A dense table and where its rows are for these indices; undefined where it stays quantised. */
  readonly lookUp?: (indices: Int32Array) => LookUp;
}

interface LookUp {
  /** [rows, width] */
  readonly table: Tensor;
  /** [N] int32 */
  readonly indices: Tensor;
}

/** A look-up in `<name>.weight` [rows, width]. Of a table that stays quantised only the rows found are de-quantised. */
export function embedding(weights: Weights, name: string, rows: number, width: number): Embedding {
  const table = weights.takeTable(`${name}.weight`, [rows, width]);
  if (table instanceof TableFile) return dense((indices) => lookUpInFile(table, indices));
  if (table instanceof mx.Tensor) {
    return dense((indices) => ({ table, indices: asTensor(indices) }));
  }
  const inFloat32 = weights.computeDtype === "float32";
  return (indices) => {
    const found = mx.dequantizeRows(table, asTensor(indices));
    return inFloat32 ? mx.astype(found, "float32") : found;
  };
}

function dense(lookUp: (indices: Int32Array) => LookUp): Embedding {
  const embed = (indices: Int32Array) => {
    const found = lookUp(indices);
    return mx.take(found.table, found.indices, 0);
  };
  return Object.assign(embed, { lookUp });
}

/** Each row that occurs is read once, however often it does. */
function lookUpInFile(file: TableFile, indices: Int32Array): LookUp {
  const places = new Map<number, number>();
  const indicesOfRead = indices.map((row) => {
    const place = places.get(row) ?? places.size;
    places.set(row, place);
    return place;
  });
  const table = file.take(Int32Array.from(places.keys()));
  return { table, indices: asTensor(indicesOfRead) };
}

function asTensor(indices: Int32Array): Tensor {
  return mx.fromInt32(indices, [indices.length]);
}

/** As many vectors of indices as there are embeddings, each [N] or [1] for all tokens -> [N, width]. */
type EmbeddingSum = (...indices: readonly Int32Array[]) => Tensor;

/** norm(embedding + embedding + …), at most three of them, added up in their order. */
export function normedEmbeddings(embeddings: readonly Embedding[], norm: LayerNorm): EmbeddingSum {
  return (...indices) => {
    const lookUps = embeddings.flatMap(({ lookUp }, i) => (lookUp ? [lookUp(indices[i]!)] : []));
    const areDense = lookUps.length === embeddings.length;
    const kernels = areDense ? kernelsOn(lookUps[0]!.table) : undefined;
    if (kernels) return kernels.embed(lookUps, norm.parameters);
    const embedded = embeddings.map((embed, i) => embed(indices[i]!));
    return norm(embedded.reduce((sum, next) => mx.add(sum, next)));
  };
}
