import { teiInfo } from "../dialects/tei/info.ts";
import type { ServerMetrics } from "../serving/metrics.ts";
import type { Throughput } from "../serving/throughput.ts";
import type { Provider } from "../serving/provider.ts";
import { Failure } from "../worker/failure.ts";
import type { ModelInfo } from "../worker/job.ts";
import { jsonAnswer, type Answer } from "./answer.ts";
import { modelRoute, type ModelRouteOptions } from "./model-routes.ts";
import { providersFor, readyModel, servedProviders } from "./models.ts";
import { Router } from "./router.ts";
import { prefersHtml, STATUS_PATH, statusPage } from "./status-page/status-page.ts";

interface RouteOptions extends ModelRouteOptions {
  readonly metrics: ServerMetrics | undefined;
  readonly throughput: Throughput;
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
  const native = modelRoute("embed", "llama/embedding", options);
  const rerank = modelRoute("rank", "rerank", options);
  router
    .on("POST", "/v1/embeddings", modelRoute("embed", "openai/embeddings", options))
    .on("POST", "/embedding", native)
    .on("POST", "/embeddings", native)
    .on("POST", "/embed", modelRoute("embed", "tei/embed", options))
    .on("POST", "/tokenize", modelRoute("tokenize", "llama/tokenize", options))
    .on("POST", "/detokenize", modelRoute("tokenize", "llama/detokenize", options))
    .on("GET", "/info", () => infoAnswer(options));
  for (const path of ["/v1/rerank", "/v1/reranking", "/rerank", "/reranking", "/v2/rerank"]) {
    router.on("POST", path, rerank);
  }
}

function addStatusRoutes(router: Router, options: RouteOptions): void {
  const providers = servedProviders(options.providers);
  const health = () => healthAnswer(providers);
  const models = () =>
    jsonAnswer({ object: "list", data: loaded(providers).map((model) => modelEntry(model)) });
  router
    .on("GET", "/", ({ request }) => (prefersHtml(request.headers) ? statusPage() : health()))
    .on("GET", "/health", health)
    .on("GET", "/v1/health", health)
    .on("GET", "/v1/models", models)
    .on("GET", "/models", models)
    .onPrefix("GET", "/v1/models/", "id", (_, id) => modelAnswer(loaded(providers), id))
    .on("GET", "/props", () => propsAnswer(loaded(providers), options))
    .on("GET", STATUS_PATH, () => statusAnswer(providers, options))
    .on("GET", "/metrics", () => metricsAnswer(options.metrics));
}

/** What the status page shows: also while a model is loading. */
function statusAnswer(providers: readonly Provider[], { throughput, version }: RouteOptions) {
  const models = providers.map(({ id, kind, state, waiting, queueDepth }) => ({
    id,
    kind,
    state,
    waiting,
    queue_depth: queueDepth,
  }));
  return jsonAnswer({ version, models, per_second: throughput.perSecond() });
}

/** Routes of a kind of model that this version does not run; the answer says what -m is for instead. */
function addMissingRoutes(router: Router): void {
  for (const path of ["/v1/chat/completions", "/v1/completions"]) {
    router.on("POST", path, () => {
      throw new Failure(
        "not_loaded",
        "this version serves no chat models: -m takes an embedding model or a reranker",
      );
    });
  }
}

/** A client of text-embeddings-inference expects one model: the embedder where there is one. */
function infoAnswer(options: RouteOptions): Answer {
  const [provider] = providersFor("tokenize", options.providers);
  return jsonAnswer(teiInfo(readyModel(provider), options));
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
  // a path of this machine works as a name too, but is nobody's business
  const aliases = names.filter((name) => name !== id && !/^[/.~]/.test(name));
  return { id, object: "model", created, owned_by: "mlxcel", kind, aliases };
}

function modelAnswer(providers: readonly Provider[], encodedId: string): Answer {
  const id = decoded(encodedId);
  const model = providers.find((each) => each.id === id || each.names.includes(id));
  if (!model) {
    const name = JSON.stringify(id.slice(0, 200));
    throw new Failure(
      "not_found",
      `there is no model ${name}; /v1/models lists those that are served`,
    );
  }
  return jsonAnswer(modelEntry(model));
}

function decoded(encodedId: string): string {
  try {
    return decodeURIComponent(encodedId);
  } catch {
    throw new Failure("not_found", "the model id in the path is not valid percent-encoding");
  }
}

/** Limits that are not set are null. */
function propsAnswer(providers: readonly Provider[], { body, maxItems }: RouteOptions): Answer {
  const models = providers.map((provider) => {
    const { id, kind, info } = readyModel(provider);
    return {
      id,
      kind,
      family: info.family,
      stored_dtype: info.storedDtype,
      cpu_precision: info.cpuPrecision ?? null,
      max_length: info.maxLength,
      ...vectorProps(info),
      limits: {
        max_length: info.maxLength,
        vocab_size: info.vocabSize,
        max_body_bytes: body.maxBytes,
        max_inputs: Number.isFinite(maxItems) ? maxItems : null,
        max_tokens_per_request: info.requestTokens ?? null,
        batch_tokens: info.batchTokens,
        queue_depth: provider.queueDepth,
      },
    };
  });
  return jsonAnswer({ models });
}

/** Absent facts are null, so that clients find the same keys for every kind. */
function vectorProps(info: ModelInfo) {
  if (info.kind === "reranker") {
    return { dim: null, pooling: null, normalization: null, multi_vector: false };
  }
  const { dim, pooling, normalization, multiVector } = info;
  return { dim, pooling, normalization, multi_vector: multiVector };
}

async function metricsAnswer(metrics: ServerMetrics | undefined): Promise<Answer> {
  if (!metrics) {
    throw new Failure("not_loaded", "metrics are off: start the server with --metrics");
  }
  return { status: 200, body: await metrics.text(), contentType: metrics.contentType };
}
