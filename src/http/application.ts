import type { Logger } from "../serving/log.ts";
import type { ServerMetrics } from "../serving/metrics.ts";
import type { Throughput } from "../serving/throughput.ts";
import { Failure, type FailureReason } from "../worker/failure.ts";
import { JSON_TYPE, type Answer } from "./answer.ts";
import { PUBLIC_PATHS, type KeyCheck } from "./auth.ts";
import { StalledBody } from "./body.ts";
import type { Cors } from "./cors.ts";
import { asFailure, failureAnswer } from "./errors.ts";
import { Exchange } from "./exchange.ts";
import { MethodNotAllowed, type Router } from "./router.ts";
import { STATUS_PATH } from "./status-page/status-page.ts";

interface ApplicationOptions {
  readonly router: Router;
  readonly keys: KeyCheck;
  readonly cors: Cors;
  readonly metrics: ServerMetrics | undefined;
  readonly throughput: Throughput;
  readonly logger: Logger;
}

/** From a Request to its Response: everything of the server but its socket. */
export class Application {
  readonly #options: ApplicationOptions;
  readonly #idle: PromiseWithResolvers<void> = Promise.withResolvers();
  #running = 0;
  #draining = false;

  constructor(options: ApplicationOptions) {
    this.#options = options;
  }

  async handle(request: Request): Promise<Response> {
    this.#running++;
    try {
      return await this.#respond(new Exchange(request));
    } finally {
      this.#running--;
      if (this.#draining && this.#running === 0) this.#idle.resolve();
    }
  }

  /** The answer when `handle` itself failed, which no request should be able to bring about. */
  broken(error: unknown): Response {
    this.#options.logger.error("answering failed", { error: String(error) });
    const { status, body } = failureAnswer(asFailure(error));
    return new Response(body, { status, headers: { "content-type": JSON_TYPE } });
  }

  /** Requests without an answer so far. */
  get running(): number {
    return this.#running;
  }

  /** Refuses new requests from now on; resolves when the running ones are answered. */
  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#running > 0) await this.#idle.promise;
  }

  async #respond(exchange: Exchange): Promise<Response> {
    let failure: Failure | undefined;
    let answer: Answer;
    try {
      answer = await this.#answer(exchange);
    } catch (thrown) {
      failure = this.#failure(thrown, exchange);
      answer = failureAnswer(failure);
    }
    const headers = this.#headers(exchange, answer, failure);
    this.#record(exchange, answer.status, failure?.reason);
    return new Response(answer.body, { status: answer.status, headers });
  }

  #answer(exchange: Exchange): Answer | Promise<Answer> {
    const { router, keys, cors } = this.#options;
    const { request, path } = exchange;
    exchange.route = router.labelOf(path) ?? exchange.route;
    if (this.#draining) throw new Failure("unavailable", "the server is shutting down");
    if (request.method === "OPTIONS") {
      return { status: 204, body: null, headers: cors.preflight(request.headers) };
    }
    if (!PUBLIC_PATHS.has(path)) keys.require(request.headers);
    const { handler, rest } = router.match(request.method, path);
    return handler(exchange, rest);
  }

  #failure(thrown: unknown, { request, requestId }: Exchange): Failure {
    if (request.signal.aborted) return new Failure("cancelled", "the client went away");
    if (!(thrown instanceof Failure)) {
      this.#options.logger.error("request failed", { requestId, error: String(thrown) });
    }
    return asFailure(thrown);
  }

  #headers(
    exchange: Exchange,
    answer: Answer,
    failure: Failure | undefined,
  ): Record<string, string> {
    const headers: Record<string, string> = { ...answer.headers };
    headers["x-request-id"] = exchange.requestId;
    if (answer.contentType) headers["content-type"] = answer.contentType;
    if (failure instanceof MethodNotAllowed) headers.allow = failure.allow;
    if (this.#draining || failure instanceof StalledBody) headers.connection = "close";
    this.#options.cors.addHeaders(exchange.request.headers, headers);
    return headers;
  }

  #record(exchange: Exchange, status: number, failure: FailureReason | undefined): void {
    const { metrics, throughput, logger } = this.#options;
    const { route, path, items, tokens, truncated, requestId, request } = exchange;
    const durationMs = exchange.elapsedMs;
    metrics?.record({ route, status, durationMs, items, tokens, truncated, failure });
    if (tokens > 0) throughput.record(items, tokens);
    // balancers and supervisors ask for health all the time, and the status page for its figures
    const isWatching = PUBLIC_PATHS.has(path) || path === STATUS_PATH;
    const level = isWatching ? "debug" : "info";
    logger[level]("request", {
      method: request.method,
      path: path.slice(0, 200),
      status,
      ms: Math.round(durationMs * 100) / 100,
      requestId,
      items: items || undefined,
      tokens: tokens || undefined,
    });
  }
}
