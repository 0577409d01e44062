import { VectorRankingTask } from "./vector-ranking-task.ts";

/** The score of a document is the cosine of its vector and the query's. */
export class BiEncoderTask extends VectorRankingTask {
  readonly #vectors: (Float32Array | undefined)[] = new Array(this.count);

  protected scores() {
    const [query, ...documents] = this.#vectors;
    const scores = Float32Array.from(documents, (document) => cosine(query, document));
    return { scores, rawScores: scores.slice() };
  }

  protected store(item: number, output: Float32Array): void {
    this.#vectors[item] = output.slice();
  }
}

/** Accumulated in f64. A zero vector points nowhere: its cosine counts as 0. */
function cosine(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (!a || !b) throw new Error("a vector is missing");
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    aa += a[i]! * a[i]!;
    bb += b[i]! * b[i]!;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}
