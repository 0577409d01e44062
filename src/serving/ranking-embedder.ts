import type { Job, ModelInfo, ResultOf } from "../worker/job.ts";
import type { ModelKind, Provider, ProviderState } from "./provider.ts";

/** An embedder as rerank requests see it: the same id, worker and queue, listed under a kind of its own. */
export class RankingEmbedder implements Provider {
  readonly #embedder: Provider;

  constructor(embedder: Provider) {
    this.#embedder = embedder;
  }

  get id(): string {
    return this.#embedder.id;
  }

  get names(): readonly string[] {
    return this.#embedder.names;
  }

  get kind(): ModelKind {
    const { info } = this.#embedder;
    return info?.kind === "embedding" && info.multiVector ? "late_interaction" : "bi_encoder";
  }

  get state(): ProviderState {
    return this.#embedder.state;
  }

  get info(): ModelInfo | undefined {
    return this.#embedder.info;
  }

  get created(): number {
    return this.#embedder.created;
  }

  get waiting(): number {
    return this.#embedder.waiting;
  }

  get queueDepth(): number {
    return this.#embedder.queueDepth;
  }

  submit<J extends Job>(job: J, signal: AbortSignal): Promise<ResultOf<J>> {
    return this.#embedder.submit(job, signal);
  }
}
