import type { ServedModel } from "../dialects/dialect.ts";
import type { ModelKind, Provider } from "../serving/provider.ts";
import { Failure } from "../worker/failure.ts";

/** The models of a server, by what they answer. */
export interface Providers {
  /** Answers embedding requests. */
  readonly embedder?: Provider | undefined;
  /** Answers rerank requests: a reranker, or the embedder once more under its ranking kind. */
  readonly ranker?: Provider | undefined;
}

/** What a route asks a model to do. */
export type Task = "embed" | "rank" | "tokenize";

const MISSING: Readonly<Record<Task, string>> = {
  embed: "no embedder is served: start the server with --embedding-model",
  rank:
    "nothing that ranks is served: start the server with --reranker-model, " +
    "or with --rerank to let the embedder rank",
  tokenize: "no model is served: start the server with --embedding-model or --reranker-model",
};

/**
 * The providers that may do it, the one for requests that name no model first.
 * @throws Failure("not_loaded") naming the flag, if there is none
 */
export function providersFor(
  task: Task,
  { embedder, ranker }: Providers,
): readonly [Provider, ...Provider[]] {
  const candidates = {
    embed: [embedder],
    rank: [ranker],
    tokenize: [embedder, ranker?.kind === "reranker" ? ranker : undefined],
  }[task];
  const [first, ...others] = candidates.filter((provider) => provider !== undefined);
  if (!first) throw new Failure("not_loaded", MISSING[task]);
  return [first, ...others];
}

/** Every model under every kind that it answers as. */
export function servedProviders({ embedder, ranker }: Providers): readonly Provider[] {
  return [embedder, ranker].filter((provider) => provider !== undefined);
}

/** Every model once, with the kind that it was loaded as: an embedder that ranks is one model. */
export function loadedProviders(providers: Providers): readonly Provider[] {
  const own: ReadonlySet<ModelKind> = new Set<ModelKind>(["embedding", "reranker"]);
  return servedProviders(providers).filter(({ kind }) => own.has(kind));
}

/** The provider as requests see it. Throws Failure("unavailable" | "internal") until it is ready. */
export function readyModel({ id, names, kind, info, state }: Provider): ServedModel {
  if (state === "failed") {
    throw new Failure("internal", `model ${id} failed to load; the server's log says why`);
  }
  if (state === "loading" || !info) throw new Failure("unavailable", "Loading model");
  return { id, names, kind, info };
}

/**
 * Other models that a request may name: known from their first load on, whatever became of them since.
 * @throws Failure("unavailable") while one loads for the first time
 */
export function alternativeModels(providers: readonly Provider[]): readonly ServedModel[] {
  return providers.map(({ id, names, kind, info }) => {
    if (!info) throw new Failure("unavailable", "Loading model");
    return { id, names, kind, info };
  });
}
