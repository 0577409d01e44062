/** What the files of a model say of it, from configurations and headers alone: no weights are read. */
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { type Checkpoint, readCheckpoint } from "../checkpoint/checkpoint.ts";
import type { GgufHeader } from "../checkpoint/gguf/header.ts";
import { readOptionalJson } from "../checkpoint/json-file.ts";
import { kindOf } from "../checkpoint/kind.ts";
import { packing } from "../checkpoint/quantization.ts";
import { readSafetensorsHeader } from "../checkpoint/safetensors-header.ts";
import { prevailingDtype } from "../checkpoint/tensor-files.ts";
import { filesBelow } from "../hub/files-below.ts";
import { readPooling } from "../pipeline/pooling-config.ts";

interface ModelFile {
  readonly path: string;
  readonly sizeBytes: number;
}

export interface ModelReport {
  readonly path: string;
  /** The directory of the model that it is an adapter of. */
  readonly base: string | null;
  readonly files: readonly ModelFile[];
  readonly kind: string;
  readonly family: string;
  readonly architecture: string | null;
  /** Elements of all tensors; null of safetensors that are quantised, whose headers do not say. */
  readonly parameters: number | null;
  /** What most bytes of the weights are stored as: `F32`; of what MLX quantised, its mode and bits: `affine, 4-bit`. */
  readonly dtype: string;
  /** Length of the vectors of an embedder, null where the files do not say. */
  readonly dim: number | null;
  /** In tokens, special ones included. */
  readonly maxLength: number | null;
  /** null: as the family does by default. */
  readonly pooling: string | null;
  readonly normalized: boolean;
  readonly prompts: Readonly<Record<string, string>>;
  readonly defaultPrompt: string | null;
}

const size = z.int().positive().optional();
const sizes = z.looseObject({
  hidden_size: size,
  d_model: size,
  dim: size,
  max_position_embeddings: size,
});
const denseFile = z.looseObject({ out_features: z.int().positive() });

/**
 * @param path a checkpoint's directory or a GGUF file
 * @param base the directory of the model that it is an adapter of
 * @throws CheckpointError naming a file that is missing or broken
 */
export function reportOf(path: string, base: string | undefined): ModelReport {
  const checkpoint = readCheckpoint(path, base);
  const { modelType, architectures, modules, prompts, defaultPromptName } = checkpoint;
  const kind = kindOf(checkpoint);
  const modes = poolingOf(checkpoint);
  return {
    path,
    base: base ?? null,
    files: filesOf(path),
    kind,
    family: modelType,
    architecture: architectures[0] ?? null,
    ...weightsOf(checkpoint),
    dim: kind === "embedding" ? dimOf(checkpoint, Math.max(1, modes.length)) : null,
    maxLength: maxLengthOf(checkpoint),
    pooling: modes.length > 0 ? modes.join(" + ") : null,
    normalized: modules === undefined || modules.some(({ type }) => type === "Normalize"),
    prompts,
    defaultPrompt: defaultPromptName ?? null,
  };
}

/** In the order in which they are joined; none: the family's. */
function poolingOf({ modules, directory, gguf, lateInteraction }: Checkpoint): readonly string[] {
  if (lateInteraction) return ["none (a vector per token)"];
  if (gguf) return gguf.pooling === undefined ? [] : [gguf.pooling];
  const folder = modules?.find(({ type }) => type === "Pooling")?.path;
  return folder === undefined ? [] : readPooling(join(directory, folder)).modes;
}

/** Only what `prevailingDtype` and a count of elements need. */
interface StoredWeights {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

const quantizedConfig = z.looseObject({ quantization: packing });

function weightsOf(checkpoint: Checkpoint): Pick<ModelReport, "parameters" | "dtype"> {
  const quantized = quantizedConfig.safeParse(checkpoint.config).data?.quantization;
  if (quantized) return { parameters: null, dtype: `${quantized.mode}, ${quantized.bits}-bit` };
  const tensors = checkpoint.gguf ? ggufWeights(checkpoint.gguf.header) : safetensors(checkpoint);
  const parameters = tensors.reduce(
    (sum, { shape }) => sum + shape.reduce((product, axis) => product * axis, 1),
    0,
  );
  return { parameters, dtype: prevailingDtype(tensors) };
}

function safetensors({ weightsDirectory }: Checkpoint): StoredWeights[] {
  return readdirSync(weightsDirectory)
    .filter((name) => /^model.*\.safetensors$/.test(name))
    .flatMap((name) => [...readSafetensorsHeader(join(weightsDirectory, name)).values()])
    .map(({ dtype, shape, begin, end }) => ({ dtype, shape, byteLength: end - begin }));
}

function ggufWeights({ tensors }: GgufHeader): StoredWeights[] {
  return [...tensors.values()].map(({ type, shape, begin, end }) => ({
    dtype: type.name,
    shape,
    byteLength: end - begin,
  }));
}

function dimOf({ config, modules = [], directory }: Checkpoint, poolings: number): number | null {
  const dense = modules.findLast(({ type }) => type === "Dense");
  const out = dense && readOptionalJson(join(directory, dense.path, "config.json"), denseFile);
  if (out) return out.out_features;
  const stated = sizes.safeParse(config).data;
  const width = stated?.hidden_size ?? stated?.d_model ?? stated?.dim;
  return width === undefined ? null : width * poolings;
}

/** The smallest limit that is stated; what a family takes off its table of positions is not known here. */
function maxLengthOf({ limits, config }: Checkpoint): number | null {
  const { sentenceMaxLength, tokenizerMaxLength } = limits;
  const positions = sizes.safeParse(config).data?.max_position_embeddings;
  const stated = [sentenceMaxLength, tokenizerMaxLength, positions].filter(
    (limit) => limit !== undefined,
  );
  return stated.length === 0 ? null : Math.min(...stated);
}

function filesOf(path: string): ModelFile[] {
  const found = statSync(path);
  if (!found.isDirectory()) return [{ path: basename(path), sizeBytes: found.size }];
  return filesBelow(path)
    .filter((file) => !file.path.split("/").some((part) => part.startsWith(".")))
    .sort((a, b) => a.path.localeCompare(b.path));
}
