import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { readOptionalJson } from "../checkpoint/json-file.ts";
import type { Templates } from "./post-processor.ts";
import { type TokenizerFile, vocabularyOf } from "./tokenizer-file.ts";

const configFile = z.looseObject({
  add_eos_token: z.boolean().nullish(),
  eos_token: z.union([z.string(), z.looseObject({ content: z.string() })]).nullish(),
});

/**
 * The templates, with the closing token that `add_eos_token` of tokenizer_config.json asks for where nothing closes a
 * text. E5-Mistral and others were trained and published so: transformers 4 puts the token there, 5 does not, and the
 * vector is that of the last token. Throws CheckpointError where the token has no id.
 */
export function withClosingToken(
  templates: Templates,
  directory: string,
  file: TokenizerFile,
): Templates {
  const { single } = templates;
  if (single.at(-1)?.kind !== "text") return templates;
  const path = join(directory, "tokenizer_config.json");
  const config = readOptionalJson(path, configFile);
  if (!config?.add_eos_token) return templates;
  const { eos_token: eos } = config;
  const token = typeof eos === "string" ? eos : eos?.content;
  for (const [piece, id] of vocabularyOf(file)) {
    if (piece !== token) continue;
    return { ...templates, single: [...single, { kind: "special", id, typeId: 0 }] };
  }
  throw new CheckpointError(
    `${path}: "add_eos_token" is set, but "eos_token" ${JSON.stringify(token)} has no id in tokenizer.json`,
  );
}
