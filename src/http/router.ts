import { Failure } from "../worker/failure.ts";
import type { Answer } from "./answer.ts";
import type { Exchange } from "./exchange.ts";

type Method = "GET" | "POST";
export type Handler = (exchange: Exchange, rest: string) => Answer | Promise<Answer>;

interface Route {
  readonly label: string;
  readonly handlers: Partial<Record<Method, Handler>>;
}

interface Match {
  readonly handler: Handler;
  /** What follows the prefix, for prefix routes. */
  readonly rest: string;
}

/** A known path with a verb that it does not answer. */
export class MethodNotAllowed extends Failure {
  constructor(
    method: string,
    path: string,
    /** Value of the `allow` header. */
    readonly allow: string,
  ) {
    super("method_not_allowed", `${path} does not answer ${method}; it answers ${allow}`);
  }
}

/** Exact paths, and prefixes for ids that may hold slashes. HEAD goes where GET goes. */
export class Router {
  readonly #exact = new Map<string, Route>();
  readonly #prefixes: { prefix: string; route: Route }[] = [];

  on(method: Method, path: string, handler: Handler): this {
    let route = this.#exact.get(path);
    if (!route) this.#exact.set(path, (route = { label: path, handlers: {} }));
    route.handlers[method] = handler;
    return this;
  }

  /** Every path that continues `prefix` by at least one character. */
  onPrefix(method: Method, prefix: string, parameter: string, handler: Handler): this {
    const route = { label: `${prefix}{${parameter}}`, handlers: { [method]: handler } };
    this.#prefixes.push({ prefix, route });
    return this;
  }

  /** The route of a path as a bounded label, whatever the verb; undefined for an unknown path. */
  labelOf(path: string): string | undefined {
    return this.#find(path)?.route.label;
  }

  /** @throws Failure("not_found"), MethodNotAllowed */
  match(method: string, path: string): Match {
    const found = this.#find(path);
    if (!found) {
      throw new Failure(
        "not_found",
        `there is nothing at ${path.slice(0, 200)}; embeddings are at /v1/embeddings, ranking is at /v1/rerank`,
      );
    }
    const { route, rest } = found;
    const handler = handlerOf(route, method);
    if (!handler) throw new MethodNotAllowed(method, route.label, allowed(route));
    return { handler, rest };
  }

  #find(path: string): { route: Route; rest: string } | undefined {
    const exact = this.#exact.get(path);
    if (exact) return { route: exact, rest: "" };
    for (const { prefix, route } of this.#prefixes) {
      if (path.startsWith(prefix) && path.length > prefix.length) {
        return { route, rest: path.slice(prefix.length) };
      }
    }
    return undefined;
  }
}

function handlerOf({ handlers }: Route, method: string): Handler | undefined {
  if (method === "POST") return handlers.POST;
  return method === "GET" || method === "HEAD" ? handlers.GET : undefined;
}

function allowed({ handlers }: Route): string {
  return [
    ...(handlers.GET ? ["GET", "HEAD"] : []),
    ...(handlers.POST ? ["POST"] : []),
    "OPTIONS",
  ].join(", ");
}
