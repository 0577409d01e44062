import { teiInfo } from "../dialects/tei/info.ts";
import type { ServerMetrics } from "../serving/metrics.ts";
import type { Provider } from "../serving/provider.ts";
import { Failure } from "../worker/failure.ts";
import { jsonAnswer, type Answer } from "./answer.ts";
import { modelRoute, readyModel, type ModelRouteOptions } from "./model-routes.ts";
import { Router, type Handler } from "./router.ts";

export interface RouteOptions extends ModelRouteOptions {
  readonly metrics: ServerMetrics | undefined;
  readonly version: string;
}

/** Every path of the server. */
export function createRouter(options: RouteOptions): Router {
  const router = new Router();
  addModelRoutes(router, options);
  addStatusRoutes(router, options);
  addMissingRoutes(router);
  return router;
}

function addModelRoutes(router: Router, options: RouteOptions): void {
  const native = modelRoute("llama/embedding", options);
  router
    .on("POST", "/v1/embeddings", modelRoute("openai/embeddings", options))
    .on("POST", "/embedding", native)
    .on("POST", "/embeddings", native)
    .on("POST", "/embed", modelRoute("tei/embed", options))
    .on("POST", "/tokenize", modelRoute("llama/tokenize", options))
    .on("POST", "/detokenize", modelRoute("llama/detokenize", options))
    .on("GET", "/info", () => jsonAnswer(teiInfo(readyModel(options.embedder), options)));
}

function addStatusRoutes(router: Router, options: RouteOptions): void {
  const providers = options.embedder ? [options.embedder] : [];
  const health = () => healthAnswer(providers);
  const models = () =>
    jsonAnswer({ object: "list", data: loaded(providers).map((model) => modelEntry(model)) });
  router
    .on("GET", "/", health)
    .on("GET", "/health", health)
    .on("GET", "/v1/health", health)
    .on("GET", "/v1/models", models)
    .on("GET", "/models", models)
    .onPrefix("GET", "/v1/models/", "id", (_, id) => modelAnswer(loaded(providers), id))
    .on("GET", "/props", () => propsAnswer(loaded(providers), options.body.maxBytes))
    .on("GET", "/metrics", () => metricsAnswer(options.metrics));
}

/** Routes of kinds of model that this server has none of: the answer names the flag that loads one. */
function addMissingRoutes(router: Router): void {
  const chat = notLoaded("no chat model is loaded: start the server with -m <chat model>");
  const rerank = notLoaded("no reranker is loaded: start the server with --reranker-model");
  for (const path of ["/v1/chat/completions", "/v1/completions"]) router.on("POST", path, chat);
  for (const path of ["/v1/rerank", "/v1/reranking", "/rerank", "/reranking", "/v2/rerank"]) {
    router.on("POST", path, rerank);
  }
}

function notLoaded(message: string): Handler {
  return () => {
    throw new Failure("not_loaded", message);
  };
}

function healthAnswer(providers: readonly Provider[]): Answer {
  for (const { state, id } of providers) {
    if (state === "loading") throw new Failure("unavailable", "Loading model");
    if (state === "failed") throw new Failure("unavailable", `model ${id} failed to load`);
  }
  return jsonAnswer({ status: "ok" });
}

/** The models that answer. Throws Failure("unavailable") while one is loading: the list would mislead. */
function loaded(providers: readonly Provider[]): readonly Provider[] {
  if (providers.some(({ state }) => state === "loading")) {
    throw new Failure("unavailable", "Loading model");
  }
  return providers.filter(({ state }) => state === "ready");
}

function modelEntry({ id, names, kind, created }: Provider) {
  const aliases = names.filter((name) => name !== id);
  return { id, object: "model", created, owned_by: "mlxcel", kind, aliases };
}

function modelAnswer(providers: readonly Provider[], encodedId: string): Answer {
  const id = decoded(encodedId);
  const model = providers.find((each) => each.id === id || each.names.includes(id));
  if (!model)
    throw new Failure("not_found", `there is no model ${JSON.stringify(id.slice(0, 200))}`);
  return jsonAnswer(modelEntry(model));
}

function decoded(encodedId: string): string {
  try {
    return decodeURIComponent(encodedId);
  } catch {
    throw new Failure("not_found", "the model id in the path is not valid percent-encoding");
  }
}

function propsAnswer(providers: readonly Provider[], maxBodyBytes: number): Answer {
  const models = providers.map((provider) => {
    const { id, kind, info } = readyModel(provider);
    return {
      id,
      kind,
      family: info.family,
      dim: info.dim,
      max_length: info.maxLength,
      pooling: info.pooling,
      normalization: info.normalization,
      multi_vector: info.multiVector,
      limits: {
        max_length: info.maxLength,
        vocab_size: info.vocabSize,
        max_body_bytes: maxBodyBytes,
      },
    };
  });
  return jsonAnswer({ models });
}

async function metricsAnswer(metrics: ServerMetrics | undefined): Promise<Answer> {
  if (!metrics) {
    throw new Failure("not_loaded", "metrics are off: start the server with --metrics");
  }
  return { status: 200, body: await metrics.text(), contentType: metrics.contentType };
}
