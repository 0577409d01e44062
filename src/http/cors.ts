const EXPOSED = "x-request-id, x-mlxcel-truncated, retry-after";
const METHODS = "GET, HEAD, POST, OPTIONS";
const DAY_SECONDS = "86400";

/** Cross-origin rules: every origin is echoed unless a list restricts them. */
export class Cors {
  readonly #origins: ReadonlySet<string> | undefined;

  /** @param origins undefined or a list with `*`: any origin */
  constructor(origins: readonly string[] | undefined) {
    this.#origins = origins && !origins.includes("*") ? new Set(origins) : undefined;
  }

  /** Adds the headers that let a page of the request's origin read the response, errors included. */
  addHeaders(request: Headers, response: Record<string, string>): void {
    const origin = request.get("origin");
    if (this.#origins || origin !== null) response.vary = "Origin";
    if (origin === null || (this.#origins && !this.#origins.has(origin))) return;
    response["access-control-allow-origin"] = origin;
    response["access-control-expose-headers"] = EXPOSED;
  }

  /** Headers that answer a pre-flight, beside those of `addHeaders`. */
  preflight(request: Headers): Record<string, string> {
    return {
      "access-control-allow-methods": METHODS,
      "access-control-allow-headers":
        request.get("access-control-request-headers") ?? "authorization, content-type, x-api-key",
      "access-control-max-age": DAY_SECONDS,
    };
  }
}
