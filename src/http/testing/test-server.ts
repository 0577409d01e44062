import { RERANKER_INFO } from "../../dialects/testing/context.ts";
import { startServer, type RunningServer, type ServerOptions } from "../server.ts";
import { DeterministicProvider } from "./deterministic-provider.ts";
import { MemoryLogger } from "./memory-logger.ts";

/** A running server with a deterministic embedder and reranker on a free port of loopback. */
export class TestServer implements AsyncDisposable {
  private constructor(
    readonly running: RunningServer,
    readonly embedder: DeterministicProvider,
    readonly ranker: DeterministicProvider,
    readonly logger: MemoryLogger,
  ) {}

  static async start(changes: Partial<ServerOptions> = {}): Promise<TestServer> {
    const embedder = new DeterministicProvider();
    const ranker = new DeterministicProvider(RERANKER_INFO);
    const logger = new MemoryLogger();
    const running = await startServer({
      listen: { host: "127.0.0.1", port: 0 },
      apiKeys: [],
      corsOrigins: undefined,
      maxBodyBytes: 4 * 1024 * 1024,
      metrics: false,
      truncate: true,
      rawScores: false,
      maxItems: Number.POSITIVE_INFINITY,
      providers: { embedder, ranker },
      version: "1.2.3",
      logger,
      ...changes,
    });
    return new TestServer(running, embedder, ranker, logger);
  }

  get url(): string {
    return this.running.url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  request(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, { redirect: "manual", ...init });
  }

  /** POST of a value as JSON, or of a string as it is. */
  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return this.request(path, { method: "POST", body: text, headers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running.stop();
  }
}
