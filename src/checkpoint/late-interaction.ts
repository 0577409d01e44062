import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "./error.ts";
import { readJson, readOptionalJson } from "./json-file.ts";
import type { ModuleEntry } from "./modules.ts";
import type { QueryExpansion, TransformerSettings } from "./transformer-settings.ts";

/** The two sides of a search. */
export type Side = "query" | "document";

/** What a checkpoint with one vector per token (late interaction, Khattab & Zaharia 2020) says of each side. */
export interface LateInteractionSettings {
  readonly query: SideSettings;
  readonly document: SideSettings;
  /** Vectors are normalised whether or not the module chain says so. */
  readonly normalized: boolean;
  /** Width of a projection stored among the tensors of the network, as `linear`; it takes the place of the chain. */
  readonly projectionSize?: number;
}

/** How the texts of one side become token rows, and which tokens give a vector. */
export interface SideSettings {
  /** A token that is put behind the first one of every row. */
  readonly marker?: string | undefined;
  /** Longest row in tokens, special tokens and marker included; absent: the checkpoint's general limit. */
  readonly maxLength?: number | undefined;
  readonly expansion?: Expansion | undefined;
  /** Tokens that take part in the network and give no vector. Words that are not one token mean nothing. */
  readonly skipped: readonly string[];
}

/** Short rows are filled up by a token, whose vectors count as well. */
export interface Expansion {
  /** Tokens of a row that is filled up. */
  readonly length: number;
  /** Whether the other tokens see the ones that fill up. */
  readonly attend: boolean;
  /** Absent: the tokenizer's mask token, else its end token. */
  readonly token?: string | null | undefined;
}

/** Who wrote the files: PyLate, the MultiVectorEncoder of sentence-transformers, or the first ColBERT of Stanford. */
type MultiVectorLayout = "ColBERT" | "MultiVectorEncoder" | "HF_ColBERT";

const CONFIG = "config_sentence_transformers.json";
const MASK_MODULE = "MultiVectorMask";
/** What PyLate leaves out of documents unless told otherwise. */
const PUNCTUATION: readonly string[] = [..."!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"];

const layoutFile = z.looseObject({
  model_type: z.string().nullish(),
  similarity_fn_name: z.string().nullish(),
});

/** The layout of a checkpoint with one vector per token; undefined for every other checkpoint. */
export function multiVectorLayout(
  directory: string,
  { architectures, modules }: Pick<ReadBefore, "architectures" | "modules">,
): MultiVectorLayout | undefined {
  const { model_type: type, ...file } = readOptionalJson(join(directory, CONFIG), layoutFile) ?? {};
  if (type === "ColBERT" || type === "MultiVectorEncoder") return type;
  // Older versions of PyLate name no type.
  if (!type && ("query_prefix" in file || file.similarity_fn_name === "MaxSim")) return "ColBERT";
  return !modules && architectures.includes("HF_ColBERT") ? "HF_ColBERT" : undefined;
}

/** What has been read of the checkpoint's other files. */
interface ReadBefore {
  readonly architectures: readonly string[];
  readonly modules: readonly ModuleEntry[] | undefined;
  readonly settings: TransformerSettings;
}

/** Reads the settings of a checkpoint of this layout. Throws CheckpointError naming what is unknown or missing. */
export function readLateInteraction(
  directory: string,
  layout: MultiVectorLayout,
  { modules = [], settings }: Pick<ReadBefore, "modules" | "settings">,
): LateInteractionSettings {
  switch (layout) {
    case "ColBERT":
      return pylateSettings(join(directory, CONFIG));
    case "MultiVectorEncoder":
      return encoderSettings(directory, modules, settings);
    case "HF_ColBERT":
      return stanfordSettings(join(directory, "artifact.metadata"));
  }
}

const tokenCount = z.int().positive().nullish();

const pylateFile = z.looseObject({
  query_prefix: z.string().nullish(),
  document_prefix: z.string().nullish(),
  query_length: tokenCount,
  document_length: tokenCount,
  do_query_expansion: z.boolean().nullish(),
  attend_to_expansion_tokens: z.boolean().nullish(),
  skiplist_words: z.array(z.string()).nullish(),
});

/** The defaults are PyLate's. */
function pylateSettings(path: string): LateInteractionSettings {
  const file = readJson(path, pylateFile);
  const queryLength = file.query_length ?? 32;
  const attend = file.attend_to_expansion_tokens ?? false;
  return {
    query: {
      marker: file.query_prefix ?? "[Q] ",
      maxLength: queryLength,
      expansion: (file.do_query_expansion ?? true) ? { length: queryLength, attend } : undefined,
      skipped: [],
    },
    document: {
      marker: file.document_prefix ?? "[D] ",
      maxLength: file.document_length ?? 180,
      skipped: file.skiplist_words ?? PUNCTUATION,
    },
    normalized: true,
  };
}

const stanfordFile = z.looseObject({
  dim: z.int().positive(),
  similarity: z.literal("cosine").nullish(),
  query_token_id: z.string().nullish(),
  doc_token_id: z.string().nullish(),
  query_maxlen: tokenCount,
  doc_maxlen: tokenCount,
  attend_to_mask_tokens: z.boolean().nullish(),
  mask_punctuation: z.boolean().nullish(),
});

/** The defaults are those of Stanford's ColBERTConfig. */
function stanfordSettings(path: string): LateInteractionSettings {
  const file = readJson(path, stanfordFile);
  const queryLength = file.query_maxlen ?? 32;
  return {
    query: {
      marker: file.query_token_id ?? "[unused0]",
      maxLength: queryLength,
      expansion: { length: queryLength, attend: file.attend_to_mask_tokens ?? false },
      skipped: [],
    },
    document: {
      marker: file.doc_token_id ?? "[unused1]",
      maxLength: file.doc_maxlen ?? 220,
      skipped: (file.mask_punctuation ?? true) ? PUNCTUATION : [],
    },
    normalized: true,
    projectionSize: file.dim,
  };
}

const side = z.enum(["query", "document"]);

const maskFile = z.looseObject({
  skiplist_words: z.array(z.string()).nullish(),
  skiplist_tasks: z.union([side, z.array(side)]).nullish(),
  keep_only_token_ids: z.null().optional(),
});

/** Its markers are prompts like any other. */
function encoderSettings(
  directory: string,
  modules: readonly ModuleEntry[],
  { queryLength, queryExpansion, documentLength }: TransformerSettings,
): LateInteractionSettings {
  const [mask, second] = modules.filter(({ type }) => type === MASK_MODULE);
  if (second) throw new CheckpointError(`modules.json: one ${MASK_MODULE} is supported, not more`);
  if (queryExpansion && !mask) {
    throw new CheckpointError(
      `modules.json: "query_expansion" needs a ${MASK_MODULE}, which is not among the modules`,
    );
  }
  const file = mask && readJson(join(directory, mask.path, "config.json"), maskFile);
  const sides = [file?.skiplist_tasks ?? "document"].flat();
  const skippedOn = (name: Side) => (sides.includes(name) ? (file?.skiplist_words ?? []) : []);
  return {
    query: {
      maxLength: longestQuery(queryLength, queryExpansion),
      expansion: queryExpansion,
      skipped: skippedOn("query"),
    },
    document: { maxLength: documentLength, skipped: skippedOn("document") },
    normalized: false,
  };
}

function longestQuery(
  queryLength: number | undefined,
  expansion: QueryExpansion | undefined,
): number | undefined {
  if (!expansion) return queryLength;
  if (expansion.strategy === "fixed") return expansion.length;
  return queryLength && Math.max(queryLength, expansion.length);
}
