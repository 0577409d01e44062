import type { ModelKind } from "../serving/provider.ts";
import type { ByteParts } from "../worker/byte-parts.ts";
import type { Job, ModelInfo, Result } from "../worker/job.ts";

/** A model as requests see it. Plain data: it also travels to the codec worker. */
export interface ServedModel {
  /** The id that answers carry: last part of the directory or repository. */
  readonly id: string;
  /** Every name that requests may use for it: id, path or repository as given, alias. */
  readonly names: readonly string[];
  readonly kind: ModelKind;
  readonly info: ModelInfo;
}

/** What parsing needs to know besides the body. Plain data. */
export interface ParseContext {
  /** The model that answers, unless the request names one of the `alternatives`. */
  readonly model: ServedModel;
  /** Other models that the route may use. Only the tokenizer routes leave a choice. */
  readonly alternatives?: readonly ServedModel[] | undefined;
  /** `--truncate`: what happens to over-long items when the request does not say. */
  readonly truncate: boolean;
  /** `--rerank-scores`: logits instead of probabilities when the request does not say. */
  readonly rawScores: boolean;
}

/** What rendering needs to remember of the request. Plain data. */
export type RenderOptions = VectorOptions | RankingOptions | TokenOptions;

export interface VectorOptions {
  readonly kind: "vectors";
  readonly model: string;
  readonly encoding: "float" | "base64";
}

export interface RankingOptions {
  readonly kind: "ranking";
  readonly model: string;
  /** `envelope`: an object with `results` (Jina, Cohere). `bare`: a list (text-embeddings-inference). */
  readonly shape: "envelope" | "bare";
  /** Only so many of the best. */
  readonly topN?: number | undefined;
  readonly rawScores: boolean;
  /** Where the answer repeats the items of the request: each as JSON text in UTF-8, all of its keys included. */
  readonly echo?: ByteParts | undefined;
}

interface TokenOptions {
  readonly kind: "tokens";
}

export interface ParsedRequest<J extends Job = Job> {
  readonly job: J;
  readonly render: RenderOptions;
  /** Kind of the model that the request named, where the route leaves a choice. */
  readonly modelKind?: ModelKind | undefined;
}

/** The buffers to transfer with what rendering needs. */
export function renderBuffers(options: RenderOptions): ArrayBuffer[] {
  const echo = options.kind === "ranking" ? options.echo : undefined;
  return echo ? [echo.bytes.buffer, echo.offsets.buffer] : [];
}

/** One wire format. Pure functions: they run on the HTTP thread or in the codec worker. */
export interface Dialect<J extends Job = Job> {
  /** Throws Failure("invalid" | "model_not_found") naming the field. `body` is the JSON value. */
  parse(body: unknown, context: ParseContext): ParsedRequest<J>;
  /** The JSON text of the answer, UTF-8. Throws Failure("internal") for what JSON cannot hold. */
  render(result: Result, options: RenderOptions): Uint8Array<ArrayBuffer>;
}
