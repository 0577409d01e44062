/** One request on its way through the server, and what the log and the metrics will say of it. */
export class Exchange {
  readonly startedAt = performance.now();
  readonly path: string;
  readonly requestId: string;
  /** The route that answers, as a bounded label: never a path made up by a client. */
  route = "other";
  items = 0;
  tokens = 0;
  truncated = 0;

  constructor(readonly request: Request) {
    this.path = pathOf(request.url);
    this.requestId = requestId(request.headers.get("x-request-id"));
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}

/** The path of an absolute URL, as sent: neither decoded nor normalised. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", start);
  return query < 0 ? url.slice(start) : url.slice(start, query);
}

const SANE_ID = /^[\w.:/+=-]{1,128}$/;

/** The client's own id if it is safe to log and to echo, else a new one. */
function requestId(sent: string | null): string {
  return sent !== null && SANE_ID.test(sent) ? sent : crypto.randomUUID();
}
