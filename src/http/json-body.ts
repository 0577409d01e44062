import { Failure } from "../worker/failure.ts";
import type { Body } from "./body.ts";

/**
 * The JSON value of a body; a byte order mark is ignored. RFC 8259 wants UTF-8; anything else is refused rather
 * than repaired, because a repaired text would silently get another vector.
 * @throws Failure("invalid")
 */
export function parseJsonBody(body: Body): unknown {
  if (body.byteLength === 0) {
    throw new Failure("invalid", "the request body is empty: send a JSON object");
  }
  const text = decoded(body);
  try {
    return JSON.parse(text);
  } catch (error) {
    // the engine's own message may quote the body
    const hint =
      error instanceof RangeError ? "it is nested too deeply" : "check commas and quotes";
    throw new Failure("invalid", `the request body is not valid JSON: ${hint}`);
  }
}

function decoded({ chunks }: Body): string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  try {
    for (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
    return text + decoder.decode();
  } catch {
    throw new Failure("invalid", "the request body is not valid UTF-8");
  }
}
