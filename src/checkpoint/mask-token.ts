import { join } from "node:path";
import { z } from "zod";
import { readOptionalJson } from "./json-file.ts";

const token = z.union([z.string(), z.looseObject({ content: z.string() })]).nullish();
const specialsFile = z.looseObject({ mask_token: token, eos_token: token });

/** In the order in which transformers looks for special tokens. */
const FILES = ["tokenizer_config.json", "special_tokens_map.json"] as const;

/** The mask token that the tokenizer's files name, else their end token; undefined where they name neither. */
export function maskTokenOf(directory: string): string | undefined {
  const files = FILES.map((name) => readOptionalJson(join(directory, name), specialsFile));
  const first = (key: "mask_token" | "eos_token") => files.map((file) => file?.[key]).find(Boolean);
  const found = first("mask_token") ?? first("eos_token");
  return typeof found === "object" && found ? found.content : (found ?? undefined);
}
