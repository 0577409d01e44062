import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import { readJson } from "../checkpoint/json-file.ts";
import type { Pooling, PoolingMode } from "./pooling.ts";

interface Spelling {
  readonly mode: PoolingMode;
  /** In `pooling_mode`. */
  readonly name: string;
  /** The older boolean key. */
  readonly flag: string;
}

/** In the order in which the older keys concatenate. */
const spellings: readonly Spelling[] = [
  { mode: "cls", name: "cls", flag: "pooling_mode_cls_token" },
  { mode: "max", name: "max", flag: "pooling_mode_max_tokens" },
  { mode: "mean", name: "mean", flag: "pooling_mode_mean_tokens" },
  {
    mode: "mean_sqrt_len",
    name: "mean_sqrt_len_tokens",
    flag: "pooling_mode_mean_sqrt_len_tokens",
  },
  { mode: "weightedmean", name: "weightedmean", flag: "pooling_mode_weightedmean_tokens" },
  { mode: "lasttoken", name: "lasttoken", flag: "pooling_mode_lasttoken" },
];

const poolingFile = z.looseObject({
  pooling_mode: z.union([z.string(), z.array(z.string()).min(1)]).nullish(),
  include_prompt: z.boolean().nullish(),
});

/**
 * Reads the config.json of a Pooling module: `pooling_mode`, one name or a list in its order, or else the older
 * boolean keys; `mean` when there is neither. Throws CheckpointError naming an unknown mode.
 */
export function readPooling(moduleDirectory: string): Pooling {
  const path = join(moduleDirectory, "config.json");
  const file = readJson(path, poolingFile);
  const modes = file.pooling_mode
    ? [file.pooling_mode].flat().map((name) => modeNamed(name, path))
    : flaggedModes(file, path);
  return { modes: modes.length > 0 ? modes : ["mean"], includePrompt: file.include_prompt ?? true };
}

function modeNamed(name: string, path: string): PoolingMode {
  const found = spellings.find((spelling) => spelling.name === name);
  if (found) return found.mode;
  const known = spellings.map((spelling) => spelling.name).join(", ");
  throw new CheckpointError(`${path}: unknown pooling_mode "${name}" (known: ${known})`);
}

function flaggedModes(file: Readonly<Record<string, unknown>>, path: string): PoolingMode[] {
  const set = Object.keys(file).filter((key) => key.startsWith("pooling_mode_") && file[key]);
  const unknown = set.find((key) => !spellings.some(({ flag }) => flag === key));
  if (unknown) throw new CheckpointError(`${path}: unknown pooling mode "${unknown}"`);
  return spellings.filter(({ flag }) => set.includes(flag)).map(({ mode }) => mode);
}
