/** Fixture checkpoints that take longer texts than they were made for. */
import { existsSync } from "node:fs";
import { z } from "zod";
import { type CheckpointCopy, floatsOf, floatTensor, type TensorTable } from "../checkpoints.ts";

/** Families that count positions from behind the padding id need this many more. */
const SPARE_POSITIONS = 2;

const POSITION_KEYS = ["max_position_embeddings", "n_positions", "max_trained_positions"];

const Settings = z.record(z.string(), z.unknown());
type Config = z.infer<typeof Settings>;

/** Makes the copy take `tokens` in every file that states a limit; a table of positions repeats its rows. */
export function stretched(copy: CheckpointCopy, tokens: number): CheckpointCopy {
  const positions = tokens + SPARE_POSITIONS;
  copy.edit("config.json", (config) => withPositions(config, positions));
  copy.tensors((table) => repeatPositions(table, positions));
  const limits = {
    "sentence_bert_config.json": { max_seq_length: tokens },
    "tokenizer_config.json": { model_max_length: tokens },
  };
  for (const [file, limit] of Object.entries(limits)) {
    if (existsSync(copy.path(file))) copy.set(file, limit);
  }
  return copy;
}

function withPositions(config: Config, positions: number): Config {
  const nested = Settings.safeParse(config.text_config).data;
  const stated = POSITION_KEYS.filter((key) => key in config);
  return {
    ...config,
    ...Object.fromEntries(stated.map((key) => [key, positions])),
    ...(nested && { text_config: withPositions(nested, positions) }),
  };
}

function repeatPositions(table: TensorTable, positions: number): void {
  for (const [name, stored] of table) {
    if (!name.endsWith("position_embeddings.weight")) continue;
    const values = floatsOf(stored);
    const length = positions * (stored.shape[1] ?? 0);
    const repeated = Float32Array.from({ length }, (_, i) => values[i % values.length] ?? 0);
    table.set(name, floatTensor([positions, stored.shape[1] ?? 0], repeated));
  }
}
