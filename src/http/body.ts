import { Failure } from "../worker/failure.ts";

export interface BodyLimits {
  readonly maxBytes: number;
  /** A body that stands still for so long is given up. */
  readonly stallMs: number;
  /** Aborted when the server stops: the rest of a body is not waited for then. */
  readonly stopping?: AbortSignal | undefined;
}

/** Bodies announced to be this small are awaited in one piece. */
const ONE_PIECE_BYTES = 64 * 1024;

const PLAIN_ENCODING = /^\s*(identity)?\s*$/i;
const MULTIPART = /^\s*multipart\//i;

/** A request's body as it arrived. Not joined: copying a big one would hold up the HTTP thread. */
export interface Body {
  readonly chunks: readonly Uint8Array<ArrayBuffer>[];
  readonly byteLength: number;
}

/**
 * Reads a request's body, however it is framed and whatever its content type says, except multipart and compressed ones.
 * @throws Failure("too_large") above the limit, also for chunked bodies; Failure("invalid")
 */
export async function readBody(request: Request, limits: BodyLimits): Promise<Body> {
  if (MULTIPART.test(request.headers.get("content-type") ?? "")) {
    throw new Failure("invalid", "multipart bodies are not read: send JSON");
  }
  const encoding = request.headers.get("content-encoding") ?? "";
  if (!PLAIN_ENCODING.test(encoding)) {
    throw new Failure(
      "invalid",
      "compressed bodies are not read: send JSON without content-encoding",
    );
  }
  const announced = request.headers.get("content-length");
  const announcedBytes = announced === null ? undefined : Number(announced);
  if (announcedBytes !== undefined && announcedBytes > limits.maxBytes) throw tooLarge(limits);
  if (announcedBytes === undefined || announcedBytes > ONE_PIECE_BYTES) {
    return readStream(request.body, limits);
  }
  const bytes = new Uint8Array(await withinStall(request.arrayBuffer(), limits));
  return { chunks: [bytes], byteLength: bytes.byteLength };
}

async function readStream(
  stream: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  limits: BodyLimits,
): Promise<Body> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let byteLength = 0;
  const reader = stream?.getReader();
  if (!reader) return { chunks, byteLength };
  try {
    for (;;) {
      const { done, value } = await withinStall(reader.read(), limits);
      if (done) return { chunks, byteLength };
      byteLength += value.byteLength;
      if (byteLength > limits.maxBytes) throw tooLarge(limits);
      chunks.push(value);
    }
  } catch (error) {
    await reader.cancel();
    throw error;
  }
}

/** Waits for more of the body, but not for ever. A connection that breaks meanwhile counts as cancelled. */
async function withinStall<T>(more: Promise<T>, { stallMs, stopping }: BodyLimits): Promise<T> {
  const { promise: givenUp, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StalledBody(stallMs)), stallMs);
  const stop = () => reject(new Failure("unavailable", "the server is shutting down"));
  if (stopping?.aborted) stop();
  stopping?.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([more, givenUp]);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("cancelled", "the connection broke while the body was read");
  } finally {
    clearTimeout(timer);
    stopping?.removeEventListener("abort", stop);
  }
}

function tooLarge({ maxBytes }: BodyLimits): Failure {
  return new Failure(
    "too_large",
    `the request body is larger than ${maxBytes} bytes: split the request, or raise --max-body-size`,
  );
}

/** The rest of such a body is not waited for, so its connection cannot be used again. */
export class StalledBody extends Failure {
  constructor(stallMs: number) {
    super("invalid", `the request body stood still for ${stallMs / 1000} s`);
  }
}
