import { maxSim } from "../pipeline/max-sim.ts";
import { QUERY, VectorRankingTask } from "./vector-ranking-task.ts";

/**
 * The score of a document is its MaxSim with the query. Only the query's vectors are kept: a document is scored when
 * its vectors are there. Those that come before the query's wait for them; they are few, as the query is among the
 * items that are tokenized first.
 */
export class LateInteractionTask extends VectorRankingTask {
  readonly #means = new Float32Array(this.count - 1);
  readonly #sums = new Float32Array(this.count - 1);
  #query: Float32Array | undefined;
  #early: { readonly item: number; readonly vectors: Float32Array }[] = [];

  protected scores() {
    return { scores: this.#means, rawScores: this.#sums };
  }

  protected store(item: number, output: Float32Array): void {
    // As the checkpoint scores, whatever the server does to vectors that it answers with.
    const vectors = this.model.finish(output, { normalize: this.model.ownNormalize });
    if (item === QUERY) {
      this.#query = vectors;
      for (const document of this.#early) this.#score(vectors, document.item, document.vectors);
      this.#early = [];
    } else if (this.#query) {
      this.#score(this.#query, item, vectors);
    } else {
      this.#early.push({ item, vectors });
    }
  }

  #score(query: Float32Array, item: number, vectors: Float32Array): void {
    const { sum, mean } = maxSim(query, vectors, this.model.dim);
    this.#sums[item - 1] = sum;
    this.#means[item - 1] = mean;
  }
}
