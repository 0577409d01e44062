/**
 * A thin client of the hub's HTTP API: the commit of a revision, the files of a commit, the bytes of a file.
 * Bun's fetch reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY itself.
 */
import { z } from "zod";
import { codeOf } from "../native/thrown.ts";
import { hubRefusal, type HubTarget } from "./hub-refusal.ts";
import { jsonOf } from "./json-text.ts";
import { type StoredFile } from "./manifest.ts";
import { TransientError, withRetries } from "./retry.ts";

/** The public hub; HF_ENDPOINT names another one. */
const DEFAULT_ENDPOINT = "https://huggingface.co";

interface HubClientOptions {
  readonly endpoint: string | undefined;
  readonly token: string | undefined;
  readonly onRemark: (text: string) => void;
  readonly signal: AbortSignal;
  /** Pause before the second attempt; default: half a second. */
  readonly firstPauseMs?: number | undefined;
}

/** One commit of a repository. */
export interface HubCommit extends HubTarget {
  readonly commit: string;
}

const MOST_REDIRECTS = 10;
const MOST_PAGES = 1000;
/** A page lists a thousand files in a fraction of this. */
const MOST_ANSWER_BYTES = 32 << 20;
const LONGEST_ANSWER_MS = 120_000;
/** A connection from which nothing comes for so long is dead. */
const SILENCE_MS = 30_000;

const oid = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);
const size = z.int().nonnegative();
const commitAnswer = z.looseObject({ sha: z.string().regex(/^[0-9a-f]{7,64}$/) });
const treeAnswer = z.array(
  z.discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("file"),
      path: z.string(),
      size,
      oid,
      lfs: z.looseObject({ oid, size }).optional(),
    }),
    z.looseObject({ type: z.enum(["directory", "unknown"]), path: z.string() }),
  ]),
);

export class HubClient {
  readonly endpoint: string;
  readonly #options: HubClientOptions;
  /** It answered: failures after that are worth another attempt. */
  #answered = false;

  constructor(options: HubClientOptions) {
    this.#options = options;
    this.endpoint = endpointOf(options.endpoint);
  }

  /** @throws Error one line, where the repository or the revision is missing or may not be read */
  async commitOf(target: HubTarget): Promise<HubCommit> {
    const revision = encodeURIComponent(target.revision);
    const url = `${this.endpoint}/api/models/${target.repository}/revision/${revision}`;
    const { body } = await this.#json(url, target, commitAnswer);
    return { ...target, commit: body.sha };
  }

  /** All files of a commit. Their paths are what the hub says, and not to be trusted. */
  async files(commit: HubCommit): Promise<StoredFile[]> {
    const files: StoredFile[] = [];
    let url: string | undefined =
      `${this.endpoint}/api/models/${commit.repository}/tree/${commit.commit}?recursive=true`;
    for (let page = 0; url !== undefined; page++) {
      if (page === MOST_PAGES) throw notLikeAHub(this.endpoint);
      const answer: Page = await this.#json(url, commit, treeAnswer);
      for (const entry of answer.body) {
        if (entry.type !== "file") continue;
        const { lfs, path } = entry;
        files.push({ path, sizeBytes: lfs?.size ?? entry.size, oid: lfs?.oid ?? entry.oid });
      }
      url = answer.next;
    }
    return files;
  }

  /**
   * The bytes of a file from `fromByte` on, in one attempt. Status 206, or 200 when the server sends it whole.
   *
   * @throws TransientError where another attempt may help
   */
  async content(
    commit: HubCommit,
    path: string,
    fromByte: number,
  ): Promise<{ status: number; chunks: AsyncIterable<Uint8Array> }> {
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    const url = `${this.endpoint}/${commit.repository}/resolve/${commit.commit}/${encoded}`;
    const range: RequestHeaders = fromByte > 0 ? { range: `bytes=${fromByte}-` } : {};
    const { response, chunks } = await this.#open(url, commit, range);
    return { status: response.status, chunks };
  }

  async #json<Schema extends z.ZodType>(url: string, target: HubTarget, schema: Schema) {
    const retries = { ...this.#options, firstPauseMs: this.firstPauseMs };
    return withRetries(retries, async () => {
      const { response, chunks } = await this.#open(url, target);
      const parsed = schema.safeParse(jsonOf(await wholeText(chunks, url)));
      if (!parsed.success) throw notLikeAHub(url);
      return { body: parsed.data, next: nextPage(response, url) };
    });
  }

  get firstPauseMs(): number {
    return this.#options.firstPauseMs ?? 500;
  }

  async #open(url: string, target: HubTarget, headers: RequestHeaders = {}) {
    const connection = new Connection(this.#options.signal);
    try {
      const response = await this.#send(url, target, { connection, headers });
      return { response, chunks: connection.chunksOf(response) };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Follows redirects itself, so that the token goes to the hub alone. */
  async #send(url: string, target: HubTarget, { connection, headers }: Sending): Promise<Response> {
    const { token } = this.#options;
    const home = new URL(this.endpoint).origin;
    let from = new URL(url);
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const authorization = token !== undefined && from.origin === home;
      const response = await this.#fetch(from, target, {
        connection,
        headers: {
          ...headers,
          // compressed bytes could not be resumed or counted
          "accept-encoding": "identity",
          ...(authorization ? { authorization: `Bearer ${token}` } : {}),
        },
      });
      const location = response.headers.get("location");
      if (response.ok) return response;
      await response.body?.cancel();
      if (response.status < 300 || response.status >= 400 || location === null) {
        throw this.#failure(response, from, target);
      }
      const to = webUrl(location, from);
      if (from.protocol === "https:" && to.protocol !== from.protocol) throw unsafe(from, to);
      from = to;
    }
    throw new Error(
      `${hostOf(url)} redirects more than ${MOST_REDIRECTS} times; check HF_ENDPOINT`,
    );
  }

  async #fetch(url: URL, target: HubTarget, { connection, headers }: Sending): Promise<Response> {
    const { signal } = connection;
    try {
      const response = await fetch(url, { headers, redirect: "manual", signal });
      this.#answered = true;
      return response;
    } catch (error) {
      this.#options.signal.throwIfAborted();
      const code = connectionFault(error);
      const failure = new TransientError(`no connection to ${url.host} (${code})`, undefined, {
        cause: error,
      });
      if (this.#answered || code === "ECONNRESET" || code === "ETIMEDOUT") throw failure;
      throw new Error(
        `model ${target.repository} is not on this machine, and there is ${failure.message}: ` +
          "check the network, the proxy and HF_ENDPOINT",
        { cause: error },
      );
    }
  }

  #failure(response: Response, url: URL, target: HubTarget): Error {
    const { status } = response;
    if (status === 429 || status === 408 || status >= 500) {
      const what = status === 429 ? "asks for fewer requests (429)" : `answered ${status}`;
      return new TransientError(`${url.host} ${what}`, retryAfterMs(response));
    }
    const access = { endpoint: this.endpoint, hasToken: this.#options.token !== undefined };
    return hubRefusal(response, target, access);
  }
}

interface Page {
  readonly body: z.output<typeof treeAnswer>;
  readonly next: string | undefined;
}

type RequestHeaders = Record<string, string>;

interface Sending {
  readonly connection: Connection;
  readonly headers: RequestHeaders;
}

/** One request with its answer, given up when nothing comes for too long. */
class Connection {
  readonly #silence = new AbortController();
  readonly #stop: AbortSignal;
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout>;

  constructor(stop: AbortSignal) {
    this.#stop = stop;
    this.signal = AbortSignal.any([stop, this.#silence.signal]);
    this.#timer = this.#startTimer();
  }

  /** @throws TransientError when the connection is cut or goes silent */
  async *chunksOf(response: Response): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of response.body ?? []) {
        this.close();
        yield chunk;
        this.#timer = this.#startTimer();
      }
    } catch (error) {
      this.#stop.throwIfAborted();
      const host = hostOf(response.url);
      throw new TransientError(
        `the connection to ${host} broke (${connectionFault(error)})`,
        undefined,
        {
          cause: error,
        },
      );
    } finally {
      this.close();
    }
  }

  /** Stops listening for silence. */
  close(): void {
    clearTimeout(this.#timer);
  }

  #startTimer() {
    return setTimeout(() => this.#silence.abort({ code: "ETIMEDOUT" }), SILENCE_MS);
  }
}

function endpointOf(given: string | undefined): string {
  const endpoint = (given || DEFAULT_ENDPOINT).replace(/\/+$/, "");
  if (URL.canParse(endpoint) && /^https?:/.test(endpoint)) return endpoint;
  throw new Error(`HF_ENDPOINT takes the http or https URL of a hub, such as ${DEFAULT_ENDPOINT}`);
}

function hostOf(url: string): string {
  return new URL(url).host;
}

/** Why a connection failed; never a message, which could hold the URL with its signature. */
function connectionFault(error: unknown): string {
  return codeOf(error) || "network error";
}

/** Of an answer that is not to be trusted to end. */
async function wholeText(chunks: AsyncIterable<Uint8Array>, url: string): Promise<string> {
  const startedAtMs = performance.now();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    bytes += chunk.length;
    const ageMs = performance.now() - startedAtMs;
    if (bytes > MOST_ANSWER_BYTES || ageMs > LONGEST_ANSWER_MS) throw notLikeAHub(url);
  }
  return Buffer.concat(parts).toString("utf8");
}

function notLikeAHub(url: string): Error {
  return new Error(`${hostOf(url)} does not answer like a hub; check HF_ENDPOINT`);
}

/** Where an answer leads to: never to a file of this machine, which fetch would read as well. */
function webUrl(to: string, from: URL): URL {
  const url = URL.parse(to, from.href);
  if (url === null) throw notLikeAHub(from.href);
  if (/^https?:$/.test(url.protocol)) return url;
  throw unsafe(from, url);
}

function unsafe(from: URL, to: URL): Error {
  return new Error(`${from.host} leads to ${to.protocol}//, which is not safe to follow`);
}

/** `<url>; rel="next"`, one of the links of RFC 8288. */
function nextPage(response: Response, url: string): string | undefined {
  const links = response.headers.get("link") ?? "";
  const next = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(links)?.[1];
  return next === undefined ? undefined : webUrl(next, new URL(url)).href;
}

/** Seconds or a date. */
function retryAfterMs({ headers }: Response): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  const seconds = /^\d+$/.test(text.trim()) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) * 1000 : undefined;
}
