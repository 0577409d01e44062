import type { ParseContext, ParsedRequest, ServedModel } from "../dialects/dialect.ts";
import { dialects, type DialectName } from "../dialects/table.ts";
import { answerBytes, totalTokens } from "../dialects/vectors-json.ts";
import type { Provider } from "../serving/provider.ts";
import { Failure } from "../worker/failure.ts";
import { itemCount } from "../worker/items.ts";
import type { Result } from "../worker/job.ts";
import { JSON_TYPE, type Answer } from "./answer.ts";
import { readBody, type Body, type BodyLimits } from "./body.ts";
import type { Codec } from "./codec.ts";
import type { Exchange } from "./exchange.ts";
import { parseJsonBody } from "./json-body.ts";
import type { Handler } from "./router.ts";

/** Bodies and answers above this size go to the codec worker: below it the HTTP thread is busy < 2 ms. */
const INLINE_BYTES = 64 * 1024;

export interface ModelRouteOptions {
  readonly embedder: Provider | undefined;
  readonly codec: Codec;
  readonly body: BodyLimits;
  readonly truncate: boolean;
}

/** The provider as requests see it. Throws Failure("not_loaded" | "unavailable" | "internal") until it is ready. */
export function readyModel(provider: Provider | undefined): ServedModel {
  if (!provider) {
    throw new Failure(
      "not_loaded",
      "no embedder is loaded: start the server with --embedding-model",
    );
  }
  const { id, names, kind, info, state } = provider;
  if (state === "failed") {
    throw new Failure("internal", `model ${id} failed to load; the server's log says why`);
  }
  if (state === "loading" || !info) throw new Failure("unavailable", "Loading model");
  return { id, names, kind, info };
}

/** Handler of a route that reads a body, runs a job on the embedder and renders the result. */
export function modelRoute(dialect: DialectName, options: ModelRouteOptions): Handler {
  const { codec, truncate } = options;
  return async (exchange) => {
    const { embedder } = options;
    readyModel(embedder);
    const body = await readBody(exchange.request, options.body);
    // asked again: reading the body took time
    const context = { model: readyModel(embedder), truncate };
    const { job, render } = await parse(dialect, body, context, codec);
    if (job.kind === "embed") exchange.items = itemCount(job.items);
    if (!embedder) throw new Failure("not_loaded", "no embedder is loaded");
    const result = await embedder.submit(job, exchange.request.signal);
    noteResult(exchange, result);
    const rendered =
      answerBytes(result, render) > INLINE_BYTES
        ? await codec.render(dialect, result, render)
        : dialects[dialect].render(result, render);
    return answer(exchange, rendered);
  };
}

function parse(
  dialect: DialectName,
  body: Body,
  context: ParseContext,
  codec: Codec,
): ParsedRequest | Promise<ParsedRequest> {
  return body.byteLength > INLINE_BYTES
    ? codec.parse(dialect, body, context)
    : dialects[dialect].parse(parseJsonBody(body), context);
}

function noteResult(exchange: Exchange, result: Result): void {
  if (result.kind === "embed") {
    exchange.tokens = totalTokens(result);
    exchange.truncated = result.truncated;
  } else if (result.kind === "tokenize") {
    exchange.tokens = result.ids.length;
  }
}

function answer({ truncated }: Exchange, body: Uint8Array<ArrayBuffer>): Answer {
  const headers = truncated > 0 ? { "x-mlxcel-truncated": String(truncated) } : undefined;
  return { status: 200, body, contentType: JSON_TYPE, headers };
}
