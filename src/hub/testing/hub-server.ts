/** A hub on this machine that speaks the real one's HTTP API over sockets, and can be made to fail. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Contents by path. */
type RepositoryFiles = Record<string, Uint8Array | string>;

export interface Repository {
  readonly files: RepositoryFiles;
  /** Branches and tags; without them, main. */
  readonly revisions?: readonly string[];
  /** What the listing says instead of the true path. */
  readonly listedAs?: Readonly<Record<string, string>>;
  /** What the listing says instead of the true size. */
  readonly listedBytes?: Readonly<Record<string, number>>;
}

export interface SeenRequest {
  /** The hub itself, or the host that it sends to for large files. */
  readonly server: "hub" | "cdn";
  /** With the query. */
  readonly url: string;
  /** Of the file that is asked for, if any. */
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
}

export interface Fault {
  /** Answer with this instead. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** End the connection after so many bytes of the body. */
  readonly cutAfterBytes?: number;
  /** Change the first byte of the body. */
  readonly wrongByte?: true;
  /** Pause before each piece of so many bytes. */
  readonly slow?: { readonly pieceBytes: number; readonly pauseMs: number };
  /** Send the whole file whatever range is asked for. */
  readonly ignoreRange?: true;
}

const PAGE_ENTRIES = 4;
/** Larger files lie on the second host, as Git LFS has them. */
const LARGE_BYTES = 20_000;

export class HubServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** Looks at each request and may spoil its answer. */
  fault: (request: SeenRequest) => Fault | undefined = () => undefined;
  url = "";

  readonly #hub = createServer((request, response) => this.#serve("hub", request, response));
  readonly #cdn = createServer((request, response) => this.#serve("cdn", request, response));
  #cdnUrl = "";
  #sending = 0;
  /** The most answers of the second host that were on their way at once. */
  mostAtOnce = 0;

  private constructor(readonly repositories: Record<string, Repository>) {}

  static async start(repositories: Record<string, Repository>): Promise<HubServer> {
    const server = new HubServer(repositories);
    server.url = await listen(server.#hub);
    server.#cdnUrl = await listen(server.#cdn);
    return server;
  }

  /** Requests for the bytes of a file, wherever they went. */
  requestsOf(path: string): SeenRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  /** The first byte that each request to the second host asked for. */
  rangesOf(path: string): number[] {
    return this.requestsOf(path)
      .filter(({ server }) => server === "cdn")
      .map(({ headers }) => firstByte(headers.range));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections();
      server.close();
    }
  }

  #serve(server: "hub" | "cdn", request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "";
    const { pathname, searchParams } = new URL(url, "http://hub");
    const resolved = /^\/([^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(pathname);
    const blob = /^\/blob\/(.+)$/.exec(pathname);
    const path = decodeURIComponent(resolved?.[2] ?? searchParams.get("path") ?? "") || undefined;
    const seen: SeenRequest = { server, url, path, headers: request.headers };
    this.requests.push(seen);
    const fault = this.fault(seen) ?? {};
    const exchange: Exchange = { asked: request.headers, fault, response };
    if (fault.status !== undefined) {
      response.writeHead(fault.status, fault.headers).end();
      return;
    }
    if (blob) return void this.#sendBlob(decodeURIComponent(blob[1] ?? ""), path, exchange);
    const [, , kind = ""] = pathname.split("/");
    if (resolved) return void this.#resolve(resolved[1] ?? "", path ?? "", exchange);
    if (kind === "models") return this.#api(pathname, searchParams, response);
    response.writeHead(404).end();
  }

  #api(pathname: string, query: URLSearchParams, response: ServerResponse): void {
    const [, , , owner, name, what, revision = ""] = pathname.split("/");
    const repository = this.repositories[`${owner}/${name}`];
    if (!repository) {
      response.writeHead(401, { "x-error-code": "RepoNotFound" }).end();
      return;
    }
    const commit = commitOf(repository);
    const { revisions = ["main"] } = repository;
    if (![...revisions, commit].includes(decodeURIComponent(revision))) {
      response.writeHead(404, { "x-error-code": "RevisionNotFound" }).end();
      return;
    }
    if (what === "revision") {
      response.end(JSON.stringify({ id: `${owner}/${name}`, sha: commit }));
      return;
    }
    const entries = treeOf(repository);
    const from = Number(query.get("cursor") ?? 0);
    const next = from + PAGE_ENTRIES;
    const link = `<${this.url}${pathname}?recursive=true&cursor=${next}>; rel="next"`;
    response.writeHead(200, next < entries.length ? { link } : {});
    response.end(JSON.stringify(entries.slice(from, next)));
  }

  async #resolve(id: string, path: string, exchange: Exchange) {
    const { response } = exchange;
    const repository = this.repositories[id];
    const content = repository && contentOf(repository, path);
    if (!repository || !content) {
      response.writeHead(404, { "x-error-code": "EntryNotFound" }).end();
      return;
    }
    const headers = { "x-repo-commit": commitOf(repository), etag: `"${oidOf(content)}"` };
    if (content.length < LARGE_BYTES) {
      await send(content, exchange, headers);
      return;
    }
    const location = `${this.#cdnUrl}/blob/${encodeURIComponent(id)}?path=${encodeURIComponent(path)}&signature=secret`;
    const linked = { "x-linked-etag": headers.etag, "x-linked-size": String(content.length) };
    response.writeHead(302, { ...headers, ...linked, location }).end();
  }

  async #sendBlob(id: string, path: string | undefined, exchange: Exchange) {
    const repository = this.repositories[id];
    const content = repository && path !== undefined && contentOf(repository, path);
    if (!content) {
      exchange.response.writeHead(404).end();
      return;
    }
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#sending);
    await send(content, exchange, {});
    this.#sending--;
  }
}

interface Exchange {
  readonly asked: IncomingMessage["headers"];
  readonly fault: Fault;
  readonly response: ServerResponse;
}

/** All files of a directory, as those of a repository. */
export function filesOf(directory: string): RepositoryFiles {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [path.slice(directory.length + 1), readFileSync(path)]),
  );
}

export function commitOf({ files }: Repository): string {
  const hash = createHash("sha1");
  for (const [path, content] of Object.entries(files)) hash.update(path).update(content);
  return hash.digest("hex");
}

/** SHA-256 of a large file; git's id of a small one. */
function oidOf(content: Buffer): string {
  if (content.length >= LARGE_BYTES) return createHash("sha256").update(content).digest("hex");
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

function treeOf({ files, listedAs = {}, listedBytes = {} }: Repository) {
  const folders = new Set(
    Object.keys(files).flatMap((path) => (path.includes("/") ? [path.split("/")[0] ?? ""] : [])),
  );
  const directories = [...folders].map((path) => ({
    type: "directory",
    oid: "0".repeat(40),
    size: 0,
    path,
  }));
  const listed = Object.entries(files).map(([path, text]) => {
    const content = Buffer.from(text);
    const oid = oidOf(content);
    const size = listedBytes[path] ?? content.length;
    const shown = { type: "file", size, path: listedAs[path] ?? path };
    return content.length < LARGE_BYTES
      ? { ...shown, oid }
      : { ...shown, oid: "1".repeat(40), lfs: { oid, size, pointerSize: 134 } };
  });
  return [...directories, ...listed];
}

function contentOf({ files, listedAs = {} }: Repository, path: string): Buffer | undefined {
  const own = Object.keys(files).find((name) => (listedAs[name] ?? name) === path);
  return own === undefined ? undefined : Buffer.from(files[own] ?? "");
}

async function send(
  whole: Buffer,
  { asked, fault, response }: Exchange,
  headers: Record<string, string>,
): Promise<void> {
  const from = fault.ignoreRange ? 0 : firstByte(asked.range);
  const body = Buffer.from(whole.subarray(from));
  if (fault.wrongByte && body.length > 0) body[0] = (body[0] ?? 0) ^ 1;
  const range = { "content-range": `bytes ${from}-${whole.length - 1}/${whole.length}` };
  response.writeHead(from > 0 ? 206 : 200, {
    ...headers,
    ...(from > 0 ? range : {}),
    "content-length": String(body.length),
  });
  const { pieceBytes, pauseMs } = fault.slow ?? { pieceBytes: body.length || 1, pauseMs: 0 };
  const end = Math.min(body.length, fault.cutAfterBytes ?? body.length);
  for (let start = 0; start < end && !response.destroyed; start += pieceBytes) {
    if (pauseMs > 0) await Bun.sleep(pauseMs);
    response.write(body.subarray(start, Math.min(end, start + pieceBytes)));
  }
  if (fault.cutAfterBytes === undefined) response.end();
  else setTimeout(() => response.destroy(), 20); // after what was written has left
}

function firstByte(range: string | undefined): number {
  return Number(/^bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0);
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}
