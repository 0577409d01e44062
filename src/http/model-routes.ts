import { answerBytes, totalTokens } from "../dialects/answer-bytes.ts";
import { requireFits } from "../dialects/answer-limit.ts";
import type { ParseContext, ParsedRequest } from "../dialects/dialect.ts";
import { dialects, type DialectName } from "../dialects/table.ts";
import type { Provider } from "../serving/provider.ts";
import { Failure } from "../worker/failure.ts";
import { itemCount } from "../worker/items.ts";
import type { Job, Result } from "../worker/job.ts";
import type { TimeAccount } from "../worker/time-account.ts";
import { JSON_TYPE, type Answer } from "./answer.ts";
import { readBody, type Body, type BodyLimits } from "./body.ts";
import type { Codec } from "./codec.ts";
import type { Exchange } from "./exchange.ts";
import { parseJsonBody } from "./json-body.ts";
import {
  alternativeModels,
  providersFor,
  readyModel,
  type Providers,
  type Task,
} from "./models.ts";
import type { Handler } from "./router.ts";

/** Bodies and answers above this size go to the codec worker: below it the HTTP thread is busy < 2 ms. */
const INLINE_BYTES = 64 * 1024;

export interface ModelRouteOptions {
  readonly providers: Providers;
  readonly codec: Codec;
  readonly body: BodyLimits;
  readonly truncate: boolean;
  readonly rawScores: boolean;
  /** Most items of one request. */
  readonly maxItems: number;
  /** Takes what reading, validating and rendering requests took. */
  readonly profile?: TimeAccount | undefined;
}

/** Handler of a route that reads a body, runs a job on a model and renders the result. */
export function modelRoute(task: Task, dialect: DialectName, options: ModelRouteOptions): Handler {
  const { codec, providers, profile } = options;
  const timed = <T>(name: string, body: () => T | Promise<T>) =>
    profile ? profile.measureAsync(name, body) : body();
  return async (exchange) => {
    const [provider, ...others] = providersFor(task, providers);
    readyModel(provider);
    const body = await timed("read", () => readBody(exchange.request, options.body));
    // asked again: reading the body took time
    const context = parseContext(provider, others, options);
    const { job, render, modelKind } = await timed("validate", () =>
      parse(dialect, body, context, codec),
    );
    noteJob(exchange, job);
    requireFewItems(job, options.maxItems);
    requireFits(job, render, context.model);
    const named = others.find(({ kind }) => kind === modelKind) ?? provider;
    const result = await named.submit(job, exchange.request.signal);
    noteResult(exchange, result);
    const rendered = await timed("render", () =>
      answerBytes(result, render) > INLINE_BYTES
        ? codec.render(dialect, result, render)
        : dialects[dialect].render(result, render),
    );
    return answer(exchange, rendered);
  };
}

function parseContext(
  provider: Provider,
  others: readonly Provider[],
  { truncate, rawScores }: ModelRouteOptions,
): ParseContext {
  const alternatives = alternativeModels(others);
  return { model: readyModel(provider), alternatives, truncate, rawScores };
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

/** `--max-inputs`. */
function requireFewItems(job: Job, maxItems: number): void {
  if (job.kind !== "embed" && job.kind !== "rerank") return;
  const items = itemCount(job.items);
  if (items <= maxItems) return;
  const { name } = job.field;
  const message = `${name} has ${items} items: this server takes at most ${maxItems} per request (--max-inputs)`;
  throw new Failure("invalid", message, name);
}

function noteJob(exchange: Exchange, job: Job): void {
  if (job.kind === "embed" || job.kind === "rerank") exchange.items = itemCount(job.items);
}

function noteResult(exchange: Exchange, result: Result): void {
  if (result.kind !== "embed" && result.kind !== "rerank") return;
  exchange.tokens = totalTokens(result);
  exchange.truncated = result.truncated;
}

function answer({ truncated }: Exchange, body: Uint8Array<ArrayBuffer>): Answer {
  const headers = truncated > 0 ? { "x-mlxcel-truncated": String(truncated) } : undefined;
  return { status: 200, body, contentType: JSON_TYPE, headers };
}
