import type { Job, ModelInfo, Result } from "../worker/job.ts";

/** A model as requests see it. Plain data: it also travels to the codec worker. */
export interface ServedModel {
  /** The id that answers carry: last part of the directory or repository. */
  readonly id: string;
  /** Every name that requests may use for it: id, path or repository as given, alias. */
  readonly names: readonly string[];
  readonly kind: "embedding";
  readonly info: ModelInfo;
}

/** What parsing needs to know besides the body. Plain data. */
export interface ParseContext {
  readonly model: ServedModel;
  /** `--truncate`: what happens to over-long items when the request does not say. */
  readonly truncate: boolean;
}

/** What rendering needs to remember of the request. Plain data. */
export interface RenderOptions {
  readonly model: string;
  readonly encoding: "float" | "base64";
}

export interface ParsedRequest<J extends Job = Job> {
  readonly job: J;
  readonly render: RenderOptions;
}

/** One wire format. Pure functions: they run on the HTTP thread or in the codec worker. */
export interface Dialect<J extends Job = Job> {
  /** Throws Failure("invalid" | "model_not_found") naming the field. `body` is the JSON value. */
  parse(body: unknown, context: ParseContext): ParsedRequest<J>;
  /** The JSON text of the answer, UTF-8. Throws Failure("internal") for what JSON cannot hold. */
  render(result: Result, options: RenderOptions): Uint8Array<ArrayBuffer>;
}
