import { z } from "zod";
import { Failure } from "../worker/failure.ts";
import type { EmbedderInfo, EmbedItem, EmbedJob, ItemsField } from "../worker/job.ts";
import type { ParseContext, ParsedRequest } from "./dialect.ts";
import { embedderInfo, optional, quote } from "./request.ts";

/** What every embeddings route understands besides the texts. */
export const embedFields = {
  dimensions: optional.integer,
  truncate: optional.boolean,
  prompt_name: optional.string,
};

/** What the OpenAI and the llama-server routes add to that. */
export const modelEmbedFields = {
  ...embedFields,
  model: optional.string,
  instruction: optional.string,
  input_type: optional.string,
  encoding_format: z.enum(["float", "base64"], 'must be "float" or "base64"').nullish(),
  embd_normalize: z
    .int("must be an integer: -1 none, 0 by the largest component, 1 L1, 2 L2, n the n-norm")
    .min(-1, "must be -1 or more")
    .nullish(),
};

type AbsentWhenNull<T> = { readonly [K in keyof T]?: T[K] | null | undefined };

type EmbedFields = AbsentWhenNull<{
  dimensions: number;
  truncate: boolean;
  prompt_name: string;
  instruction: string;
  input_type: string;
  encoding_format: "float" | "base64";
  embd_normalize: number;
}>;

export interface ParsedItems {
  readonly items: readonly EmbedItem[];
  readonly field: ItemsField;
}

/** Puts validated fields and items together. Throws Failure("invalid") for values the model cannot honour. */
export function embedRequest(
  fields: EmbedFields,
  { items, field }: ParsedItems,
  { model, truncate }: ParseContext,
): ParsedRequest<EmbedJob> {
  const info = embedderInfo(model);
  return {
    job: {
      kind: "embed",
      items,
      field,
      instruction: fields.instruction?.trim() ? fields.instruction : undefined,
      promptName: promptName(fields, info),
      dimensions: dimensions(fields.dimensions, info),
      normalize: fields.embd_normalize ?? undefined,
      truncate: fields.truncate ?? truncate,
    },
    render: { kind: "vectors", model: model.id, encoding: fields.encoding_format ?? "float" },
  };
}

function dimensions(asked: number | null | undefined, model: EmbedderInfo): number | undefined {
  if (asked === null || asked === undefined) return undefined;
  if (asked >= 1 && asked <= model.dim) return asked;
  throw new Failure(
    "invalid",
    `dimensions must be an integer from 1 to ${model.dim}`,
    "dimensions",
  );
}

/** Other vendors' words for the two sides of a search. */
const SYNONYMS = new Map([
  ["search_query", "query"],
  ["search_document", "document"],
  ["passage", "document"],
]);

/** `prompt_name` wins over `input_type`; a checkpoint's own prompt wins over a synonym of the same name. */
function promptName(fields: EmbedFields, model: EmbedderInfo): string | undefined {
  const name = fields.prompt_name ?? fields.input_type;
  if (name === null || name === undefined) return undefined;
  if (model.promptNames.includes(name)) return name;
  const plain = SYNONYMS.get(name) ?? name;
  if (plain === "query" || plain === "document") return plain;
  const field = typeof fields.prompt_name === "string" ? "prompt_name" : "input_type";
  const known = [...new Set([...model.promptNames, "query", "document"])].map(quote).join(", ");
  throw new Failure("invalid", `${field} ${quote(name)} is unknown; known are ${known}`, field);
}
