import { readFileSync, statSync, unlinkSync } from "node:fs";
import { isIP } from "node:net";
import type { Logger } from "../serving/log.ts";
import { ServerMetrics } from "../serving/metrics.ts";
import { Application } from "./application.ts";
import { KeyCheck } from "./auth.ts";
import { Codec } from "./codec.ts";
import { Cors } from "./cors.ts";
import { loadedProviders, type Providers } from "./models.ts";
import { createRouter } from "./routes.ts";

export type Listen =
  { readonly host: string; readonly port: number } | { readonly socketPath: string };

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface ServerOptions {
  readonly listen: Listen;
  readonly tls?: TlsFiles | undefined;
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
  readonly providers: Providers;
  readonly version: string;
  readonly logger: Logger;
  /** Where the codec worker's module is, if not beside this one (as in a compiled binary). */
  readonly codecWorkerUrl?: URL | undefined;
  /** A body that stands still for so long is given up. */
  readonly bodyStallMs?: number | undefined;
}

export interface RunningServer {
  readonly url: string;
  /** Refuses new requests with 503, finishes those that run, then closes. */
  stop(): Promise<void>;
}

const BODY_STALL_MS = 60_000;

/**
 * Starts to listen.
 * @throws Error of one line: address in use or not available, unreadable certificate, socket path taken
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { logger, apiKeys, corsOrigins, listen, providers } = options;
  const { version, truncate, rawScores } = options;
  const codec = new Codec(
    options.codecWorkerUrl ?? new URL("./codec-worker.ts", import.meta.url),
    logger,
  );
  const metrics = options.metrics ? new ServerMetrics(loadedProviders(providers)) : undefined;
  const stopping = new AbortController();
  const body = {
    stopping: stopping.signal,
    maxBytes: options.maxBodyBytes,
    stallMs: options.bodyStallMs ?? BODY_STALL_MS,
  };
  const router = createRouter({ providers, codec, body, truncate, rawScores, metrics, version });
  const application = new Application({
    router,
    keys: new KeyCheck(apiKeys),
    cors: new Cors(corsOrigins),
    metrics,
    logger,
  });
  if ("socketPath" in listen) await removeStaleSocket(listen.socketPath);
  const server = bind(application, options);
  return {
    url: "socketPath" in listen ? `unix:${listen.socketPath}` : withoutSlash(server.url),
    async stop() {
      const drained = application.drain();
      stopping.abort();
      await drained;
      await server.stop();
      codec.stop();
    },
  };
}

function bind(application: Application, { listen, tls }: ServerOptions): Bun.Server<undefined> {
  const common = {
    fetch: (request: Request) => application.handle(request),
    // bodies are bounded by our own limit, with a JSON answer; the runtime's 413 is empty
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    ...(tls ? { tls: readTls(tls) } : {}),
  };
  const options: Bun.Serve.Options<undefined> =
    "socketPath" in listen
      ? { ...common, unix: listen.socketPath }
      : { ...common, hostname: listen.host, port: listen.port };
  try {
    // The runtime's idle timeout also ends requests whose handler still works. It holds for unix sockets, too,
    // though the typings leave it out there.
    return Bun.serve(Object.assign(options, { idleTimeout: 0 }));
  } catch (error) {
    throw new Error(bindMessage(error, listen, tls), { cause: error });
  }
}

function bindMessage(error: unknown, listen: Listen, tls: TlsFiles | undefined): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (tls && code.includes("OSSL")) {
    return `${tls.certFile} and ${tls.keyFile} are not a PEM certificate and its key (${code})`;
  }
  if ("socketPath" in listen)
    return `cannot listen on the socket ${listen.socketPath}: ${code || error}`;
  const { host, port } = listen;
  if (code !== "EADDRINUSE") return `cannot listen on ${host}:${port}: ${code || error}`;
  if (isIP(host) === 0 && host !== "localhost") {
    return `cannot listen on ${host}:${port}: the port is in use, or the host has no address here`;
  }
  return `port ${port} on ${host} is in use: stop what listens there or choose another --port`;
}

function readTls({ certFile, keyFile }: TlsFiles): { cert: string; key: string } {
  return { cert: readPem(certFile), key: readPem(keyFile) };
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`cannot read the TLS file ${path}: ${why}`, { cause: error });
  }
}

/** A socket file that nobody listens on was left by a server that was killed. */
async function removeStaleSocket(path: string): Promise<void> {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file) return;
  if (!file.isSocket())
    throw new Error(`${path} exists and is not a socket: choose another --host`);
  if (await isListening(path)) {
    throw new Error(`another server listens on ${path}: stop it or choose another --host`);
  }
  unlinkSync(path);
}

async function isListening(path: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false; // refused: nobody is there
  }
}

function withoutSlash(url: URL): string {
  return url.href.replace(/\/$/, "");
}
