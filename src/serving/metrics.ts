import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { FailureReason } from "../worker/failure.ts";
import type { Provider } from "./provider.ts";

const DURATION_BUCKETS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
];

/** What is counted of one answered request. */
interface RequestRecord {
  /** A bounded label: the route's pattern, or `other`. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Items of the request, be it answered or refused. */
  readonly items: number;
  /** Tokens that a model saw. */
  readonly tokens: number;
  /** Items cut to the length limit. */
  readonly truncated: number;
  readonly failure?: FailureReason | undefined;
}

/** Prometheus metrics of one server, in a registry of its own. */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: "mlxcel_requests_total",
    help: "Answered requests",
    labelNames: ["route", "status"],
    registers: [this.#registry],
  });
  readonly #duration = new Histogram({
    name: "mlxcel_request_duration_seconds",
    help: "Time from the request's headers to its answer",
    labelNames: ["route"],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [this.#registry],
  });
  readonly #items = this.#counter("mlxcel_items_total", "Items embedded or ranked");
  readonly #tokens = this.#counter(
    "mlxcel_tokens_total",
    "Tokens the models saw, padding excluded",
  );
  readonly #truncated = this.#counter(
    "mlxcel_truncated_items_total",
    "Items cut to the model's length limit",
  );
  readonly #aborted = this.#counter(
    "mlxcel_requests_aborted_total",
    "Requests whose client went away before the answer",
  );
  readonly #refused = this.#counter(
    "mlxcel_requests_refused_busy_total",
    "Requests refused because the queue was full",
  );

  /** @param providers the models whose queues are watched */
  constructor(providers: readonly Provider[]) {
    new Gauge({
      name: "mlxcel_queue_waiting",
      help: "Requests that wait: admitted, nothing of them started",
      labelNames: ["model", "kind"],
      registers: [this.#registry],
      collect() {
        for (const { id, kind, waiting } of providers) this.set({ model: id, kind }, waiting);
      },
    });
    new Gauge({
      name: "mlxcel_model_ready",
      help: "1 when the model answers, 0 while it loads or after it failed",
      labelNames: ["model", "kind"],
      registers: [this.#registry],
      collect() {
        for (const { id, kind, state } of providers)
          this.set({ model: id, kind }, state === "ready" ? 1 : 0);
      },
    });
    new Gauge({
      name: "process_resident_memory_bytes",
      help: "Resident memory of the process",
      registers: [this.#registry],
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
  }

  record(request: RequestRecord): void {
    const { route, status } = request;
    this.#requests.inc({ route, status: String(status) });
    this.#duration.observe({ route }, request.durationMs / 1000);
    if (request.items > 0 && !request.failure) this.#items.inc(request.items);
    if (request.tokens > 0) this.#tokens.inc(request.tokens);
    if (request.truncated > 0) this.#truncated.inc(request.truncated);
    if (request.failure === "cancelled") this.#aborted.inc();
    if (request.failure === "busy") this.#refused.inc();
  }

  /** In Prometheus' text format, of the type `contentType`. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name, help, registers: [this.#registry] });
  }
}
