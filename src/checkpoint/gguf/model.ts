import { CheckpointError } from "../error.ts";
import { COMMON_KEYS, type Architecture } from "./architecture.ts";
import { bert } from "./bert.ts";
import type { GgufHeader } from "./header.ts";
import { gemmaEmbedding } from "./gemma-embedding.ts";
import { nomicBert } from "./nomic-bert.ts";
import { qwen3 } from "./qwen3.ts";

/** Every `general.architecture` that loads. */
export const architectures: readonly Architecture[] = [bert, nomicBert, qwen3, gemmaEmbedding];

/** What a GGUF file is for, by its `pooling_type`: the way to pool, or ranking. */
type GgufPooling = "none" | "mean" | "cls" | "lasttoken" | "rank";

/** By `pooling_type`. */
const POOLING: readonly GgufPooling[] = ["none", "mean", "cls", "lasttoken", "rank"];

/** A GGUF file, read as a model of one of the families. */
export interface GgufModel {
  readonly header: GgufHeader;
  readonly architecture: Architecture;
  /** What config.json would hold, and first in its `architectures`. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly className: string;
  /** Longest row in tokens, special tokens included. */
  readonly contextLength: number;
  /** undefined: the file does not say. */
  readonly pooling: GgufPooling | undefined;
}

/** Throws CheckpointError naming the architecture or the key that is not known. */
export function readGgufModel(header: GgufHeader): GgufModel {
  const architecture = architectureOf(header);
  requireKnownKeys(header, architecture);
  const { name, classes } = architecture;
  const pooling = poolingOf(header, architecture);
  const className = classFor(pooling, classes);
  const contextLength = header.metadata.count(`${name}.context_length`);
  const config = architecture.config(header);
  return { header, architecture, config, className, contextLength, pooling };
}

function classFor(pooling: GgufPooling | undefined, classes: Architecture["classes"]): string {
  const { embedder, reranker = embedder, generator = embedder } = classes;
  if (pooling === "rank") return reranker;
  return pooling === undefined ? generator : embedder;
}

function architectureOf({ path, metadata }: GgufHeader): Architecture {
  const name = metadata.text("general.architecture");
  const found = architectures.find((architecture) => architecture.name === name);
  if (found) return found;
  const known = architectures.map((architecture) => architecture.name).join(", ");
  throw new CheckpointError(
    `${path}: the GGUF architecture "${name}" is not supported (known: ${known})`,
  );
}

function requireKnownKeys({ path, metadata }: GgufHeader, { name, keys }: Architecture): void {
  const known = new Set([...COMMON_KEYS, ...keys].map((key) => `${name}.${key}`));
  for (const key of metadata.keys()) {
    if (!key.startsWith(`${name}.`) || known.has(key)) continue;
    throw new CheckpointError(`${path}: metadata key "${key}" is not a supported setting`);
  }
}

function poolingOf({ metadata }: GgufHeader, { name, classes }: Architecture) {
  const key = `${name}.pooling_type`;
  const stored = metadata.optionalCount(key);
  if (stored === undefined) return undefined;
  const pooling = POOLING[stored];
  if (pooling === undefined) {
    throw metadata.fault(key, `is ${stored}, supported are 0 to ${POOLING.length - 1}`);
  }
  if (pooling === "rank" && classes.reranker === undefined) {
    throw metadata.fault(
      key,
      `is ${stored} (rank): rerankers of this architecture are not supported`,
    );
  }
  return pooling;
}
