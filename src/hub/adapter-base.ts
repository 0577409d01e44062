import { join } from "node:path";
import { z } from "zod";
import { ADAPTER_CONFIG } from "./file-names.ts";
import { jsonOf } from "./json-text.ts";
import { readText } from "./text-file.ts";

const configFile = z.looseObject({
  base_model_name_or_path: z.string().min(1),
  revision: z.string().nullish(),
});

/** The model that a LoRA adapter was trained on. */
interface AdapterBase {
  readonly name: string;
  readonly revision: string | undefined;
}

/** undefined for what is no adapter. Throws Error where its base is not named. */
export function adapterBase(directory: string): AdapterBase | undefined {
  const path = join(directory, ADAPTER_CONFIG);
  const text = readText(path);
  if (text === undefined) return undefined;
  const parsed = configFile.safeParse(jsonOf(text));
  if (!parsed.success) throw new Error(`${path} does not name its base_model_name_or_path`);
  const { base_model_name_or_path: name, revision } = parsed.data;
  return { name, revision: revision || undefined };
}
