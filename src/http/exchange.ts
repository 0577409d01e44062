/** One request on its way through the server, and what the log and the metrics will say of it. */
export class Exchange {
  readonly startedAt = performance.now();
  readonly path: string;
  readonly requestId: string;
  /** The route that answers, as a bounded label: never a path made up by a client. */
  route = "other";
  /** Items asked for, whether they were answered or refused. */
  items = 0;
  /** Tokens that a model saw. */
  tokens = 0;
  /** Items cut to the length limit. */
  truncated = 0;

  constructor(readonly request: Request) {
    this.path = pathOf(request.url);
    this.requestId = requestId(request.headers.get("x-request-id"));
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}

/**
 * The path of a request's URL, not percent-decoded. The runtime has resolved dot segments and backslashes in it, as
 * any URL parser does, except where the Host header is missing or no host name: then it passes on the path and query
 * alone, as sent. Both end up the same here.
 */
function pathOf(url: string): string {
  const absolute = url.startsWith("/") ? new URL(`http://localhost${url}`).href : url;
  const start = absolute.indexOf("/", absolute.indexOf("://") + 3);
  if (start < 0) return absolute; // the host and port of a CONNECT
  const length = absolute.slice(start).search(/[?#]/);
  return length < 0 ? absolute.slice(start) : absolute.slice(start, start + length);
}

const SANE_ID = /^[\w.:/+=-]{1,128}$/;

/** The client's own id if it is safe to log and to echo, else a new one. */
function requestId(sent: string | null): string {
  return sent !== null && SANE_ID.test(sent) ? sent : crypto.randomUUID();
}
