import { CheckpointError } from "../error.ts";
import type { ModelType } from "../model-types.ts";
import type { GgufHeader } from "./header.ts";
import type { Metadata } from "./metadata.ts";

/** One `general.architecture`: how its keys and tensors are called in the family that computes it. */
export interface Architecture {
  /** `general.architecture`, and what its keys begin with. */
  readonly name: string;
  /** The `model_type` of the same network. */
  readonly modelType: ModelType;
  /**
   * `architectures` of config.json: as an embedder, with a classification head where the family has one, and of a file
   * without `pooling_type` where the family writes texts.
   */
  readonly classes: {
    readonly embedder: string;
    readonly reranker?: string;
    readonly generator?: string;
  };
  /** Keys behind `<name>.`, beside the common ones, that are read or change nothing. */
  readonly keys: readonly string[];
  /**
   * Layers as the file calls them, with N for a number, and as the family does. Both append `.weight` and, where
   * there is one, `.bias`.
   */
  readonly layers: Readonly<Record<string, string>>;
  /** Added to stored values, by the file's name of the layer: norms that the file keeps as factors around 1. */
  readonly offsets?: Readonly<Record<string, number>>;
  /** Layers, by the family's names, that pooled vectors go through in this order where the file has them. */
  readonly projections?: readonly string[];
  /** config.json as the family reads it. Throws CheckpointError naming the key that is missing or unknown. */
  config(header: GgufHeader): Readonly<Record<string, unknown>>;
}

/** Keys of every architecture. */
export const COMMON_KEYS: readonly string[] = [
  "attention.causal",
  "attention.head_count",
  "block_count",
  "context_length",
  "embedding_length",
  "feed_forward_length",
  "pooling_type",
  "vocab_size",
];

/** Refuses a key whose value is none of these; it may be absent. */
export function requireOneOf(
  metadata: Metadata,
  key: string,
  allowed: readonly (string | number | boolean)[],
): void {
  const value = metadata.optional(key);
  if (value === undefined || allowed.some((one) => one === value)) return;
  const supported = allowed.map((one) => JSON.stringify(one)).join(" or ");
  throw metadata.fault(key, `is ${JSON.stringify(value)}, supported is ${supported}`);
}

/** Rows of a table. */
export function rowsOf({ path, tensors }: GgufHeader, name: string): number {
  const [rows] = tensors.get(name)?.shape ?? [];
  if (rows !== undefined) return rows;
  throw new CheckpointError(`${path}: tensor "${name}" is missing; download it again`);
}
