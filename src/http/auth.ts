import { createHash, timingSafeEqual } from "node:crypto";
import { Failure } from "../worker/failure.ts";

/** Answered without a key, so that balancers can ask. */
export const PUBLIC_PATHS: ReadonlySet<string> = new Set(["/", "/health", "/v1/health"]);

const BEARER = /^bearer\s+/i;

// equal lengths whatever was sent: nothing about a key leaks through the time of a comparison
function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** Checks API keys: `Authorization: Bearer K` (any case), a bare `Authorization: K`, or `X-Api-Key: K`. */
export class KeyCheck {
  readonly #digests: readonly Buffer[];

  /** @param keys none: everybody may pass */
  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digest);
  }

  /** @throws Failure("unauthorized") */
  require(headers: Headers): void {
    if (this.#digests.length === 0) return;
    const authorization = headers.get("authorization")?.replace(BEARER, "");
    const sent = [authorization, headers.get("x-api-key")].filter((key) => typeof key === "string");
    if (sent.length === 0) {
      throw new Failure(
        "unauthorized",
        "this server needs an API key: Authorization: Bearer <key>",
      );
    }
    if (!sent.some((key) => this.#isKnown(key))) {
      throw new Failure("unauthorized", "the API key is not one of this server's");
    }
  }

  #isKnown(key: string): boolean {
    const sent = digest(key.trim());
    let known = false;
    for (const digest of this.#digests) known = timingSafeEqual(sent, digest) || known;
    return known;
  }
}
