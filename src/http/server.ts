import { statSync, unlinkSync } from "node:fs";
import { codecWorkerUrl } from "../entries.ts";
import { codeOf } from "../native/thrown.ts";
import type { Logger } from "../serving/log.ts";
import { ServerMetrics } from "../serving/metrics.ts";
import { Throughput } from "../serving/throughput.ts";
import type { TimeAccount } from "../worker/time-account.ts";
import { Application } from "./application.ts";
import { KeyCheck } from "./auth.ts";
import { bindMessage } from "./bind-message.ts";
import { Codec } from "./codec.ts";
import { Cors } from "./cors.ts";
import { loadedProviders, type Providers } from "./models.ts";
import { createRouter } from "./routes.ts";

export type Listen =
  { readonly host: string; readonly port: number } | { readonly socketPath: string };

export interface Tls {
  /** Certificate chain, PEM. */
  readonly cert: string;
  /** Private key, PEM. */
  readonly key: string;
  /** Where they were read from, for messages. */
  readonly certFile: string;
  readonly keyFile: string;
}

/** What users set of a server. */
export interface ServerSettings {
  readonly listen: Listen;
  readonly tls?: Tls | undefined;
  /** None: no key is asked for. */
  readonly apiKeys: readonly string[];
  /** undefined: any origin is echoed. */
  readonly corsOrigins: readonly string[] | undefined;
  readonly maxBodyBytes: number;
  readonly metrics: boolean;
  /** What happens to over-long items when the request does not say. */
  readonly truncate: boolean;
  /** Scores are logits instead of probabilities when the request does not say. */
  readonly rawScores: boolean;
  /** Most items of one request. */
  readonly maxItems: number;
}

export interface ServerOptions extends ServerSettings {
  readonly providers: Providers;
  readonly version: string;
  readonly logger: Logger;
  /** Takes what the HTTP side of requests took. */
  readonly profile?: TimeAccount | undefined;
  /** A body that stands still for so long is given up. */
  readonly bodyStallMs?: number | undefined;
  /** When the server stops, answers that clients have not read by then are given up. */
  readonly unreadMs?: number | undefined;
}

export interface RunningServer {
  readonly url: string;
  /** Requests without an answer so far. */
  readonly running: number;
  /**
   * Refuses new requests with 503, finishes those that run, then closes. Clients that do not read their answer or do
   * not end what they send hold it up for a few seconds at most.
   */
  stop(): Promise<void>;
}

const BODY_STALL_MS = 60_000;
const UNREAD_MS = 5_000;

/**
 * Starts to listen.
 * @throws Error of one line: address in use or not available, no certificate, socket path taken
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { logger, apiKeys, corsOrigins, listen, providers } = options;
  const { version, truncate, rawScores, maxItems, profile } = options;
  const codec = new Codec(codecWorkerUrl, logger);
  const metrics = options.metrics ? new ServerMetrics(loadedProviders(providers)) : undefined;
  const throughput = new Throughput();
  const stopping = new AbortController();
  const body = {
    stopping: stopping.signal,
    maxBytes: options.maxBodyBytes,
    stallMs: options.bodyStallMs ?? BODY_STALL_MS,
  };
  const router = createRouter({
    providers,
    codec,
    body,
    truncate,
    rawScores,
    maxItems,
    profile,
    metrics,
    throughput,
    version,
  });
  const application = new Application({
    router,
    keys: new KeyCheck(apiKeys),
    cors: new Cors(corsOrigins),
    metrics,
    throughput,
    logger,
  });
  const server = await bind(application, options);
  return {
    url: "socketPath" in listen ? `unix:${listen.socketPath}` : withoutSlash(server.url),
    get running() {
      return application.running;
    },
    async stop() {
      const drained = application.drain();
      stopping.abort();
      await drained;
      await close(server, options.unreadMs ?? UNREAD_MS);
      codec.stop();
    },
  };
}

/** The runtime waits for every client to read its answer and to end its request, however long that takes. */
async function close(server: Bun.Server<undefined>, patienceMs: number): Promise<void> {
  const { promise: outOfPatience, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, patienceMs);
  await Promise.race([server.stop(), outOfPatience]);
  clearTimeout(timer);
  await server.stop(true);
}

async function bind(
  application: Application,
  { listen, tls }: ServerOptions,
): Promise<Bun.Server<undefined>> {
  const common = {
    fetch: (request: Request) => application.handle(request),
    error: (error: unknown) => application.broken(error),
    // its error page shows source code
    development: false,
    // bodies are bounded by our own limit, with a JSON answer; the runtime's 413 is empty
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    ...(tls ? { tls: { cert: tls.cert, key: tls.key } } : {}),
  };
  const options: Bun.Serve.Options<undefined> =
    "socketPath" in listen
      ? { ...common, unix: listen.socketPath }
      : // in production mode the runtime shares ports by default: each server would take some of the requests
        { ...common, hostname: listen.host, port: listen.port, reusePort: false };
  try {
    if ("socketPath" in listen) await removeStaleSocket(listen.socketPath);
    // The runtime's idle timeout also ends requests whose handler still works. It holds for unix sockets, too,
    // though the typings leave it out there.
    return Bun.serve(Object.assign(options, { idleTimeout: 0 }));
  } catch (error) {
    throw error instanceof SocketTaken
      ? error
      : new Error(bindMessage(error, listen, tls), { cause: error });
  }
}

/** The path of a unix socket is something that must not be replaced. */
class SocketTaken extends Error {}

/** A socket file that nobody listens on was left by a server that was killed. */
async function removeStaleSocket(path: string): Promise<void> {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file) return;
  if (!file.isSocket())
    throw new SocketTaken(`${path} exists and is not a socket: choose another --host`);
  if (await isListening(path)) {
    throw new SocketTaken(`another server listens on ${path}: stop it or choose another --host`);
  }
  unlinkSync(path);
}

async function isListening(path: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } });
    socket.end();
    return true;
  } catch (error) {
    if (codeOf(error) === "ECONNREFUSED") return false; // nobody is there
    throw error;
  }
}

function withoutSlash(url: URL): string {
  return url.href.replace(/\/$/, "");
}
