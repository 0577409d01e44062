import { join } from "node:path";
import { z } from "zod";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { readJson } from "../checkpoint/json-file.ts";
import type { LateInteractionSettings } from "../checkpoint/late-interaction.ts";
import type { ModuleEntry } from "../checkpoint/modules.ts";
import { isFile } from "../checkpoint/regular-file.ts";
import { Weights, type WeightsOptions } from "../checkpoint/weights.ts";
import { POOLING_FOLDER } from "../hub/file-names.ts";
import { linear, type LinearShape } from "../nn/linear.ts";
import { type Feature, loadDense } from "./dense.ts";
import { ggufChain } from "./gguf-chain.ts";
import { pool, type PooledRows, type Pooling, type PoolingMode } from "./pooling.ts";
import { readPooling } from "./pooling-config.ts";

export interface ChainOptions {
  readonly computeDtype: WeightsOptions["computeDtype"];
  /** Width of the encoder's rows. */
  readonly hiddenSize: number;
  /** For checkpoints without a Pooling module. */
  readonly defaultPooling: PoolingMode;
  /** Overrides the checkpoint's own modes. */
  readonly pooling?: PoolingMode | undefined;
}

/** What turns hidden states into vectors: the modules of a checkpoint that follow its Transformer. */
export interface ModuleChain {
  /** Absent: a vector per token. */
  readonly pooling?: Pooling | undefined;
  /** Width of the vectors. */
  readonly outputSize: number;
  /** The chain closes with a Normalize module, which `forward` leaves to the caller. */
  readonly endsNormalized: boolean;
  /** [N, H] f32 -> [B, outputSize] f32, or [N, outputSize] without pooling, before a closing Normalize. */
  forward(hidden: Tensor, rows: PooledRows): Tensor;
}

/**
 * Builds the chain that modules.json lists, in its order; without that file the pooling of 1_Pooling or the family,
 * and L2; or that of a GGUF file. Throws CheckpointError naming the module that does not fit.
 */
export function loadModuleChain(checkpoint: Checkpoint, options: ChainOptions): ModuleChain {
  const { lateInteraction, gguf } = checkpoint;
  if (gguf) return ggufChain(gguf, options);
  return lateInteraction
    ? tokenChain(checkpoint, options, lateInteraction)
    : pooledChain(checkpoint, options);
}

function pooledChain(checkpoint: Checkpoint, options: ChainOptions): ModuleChain {
  const { pooling: poolingModule, vectorModules } = splitChain(checkpoint);
  const stored: Pooling = poolingModule
    ? readPooling(join(checkpoint.directory, poolingModule.path))
    : { modes: [options.defaultPooling], includePrompt: true };
  const pooling = options.pooling ? { ...stored, modes: [options.pooling] } : stored;
  const { forward, ...ending } = vectorSteps(checkpoint, vectorModules, {
    feature: "sentence_embedding",
    width: options.hiddenSize * pooling.modes.length,
    computeDtype: options.computeDtype,
  });
  return { pooling, ...ending, forward: (hidden, rows) => forward(pool(hidden, rows, pooling)) };
}

/** A chain without Pooling: each token keeps its vector. */
function tokenChain(
  checkpoint: Checkpoint,
  { pooling, hiddenSize: width, computeDtype }: ChainOptions,
  { normalized, projectionSize }: LateInteractionSettings,
): ModuleChain {
  if (pooling) {
    throw new CheckpointError(
      "--pooling does not apply to a model with one vector per token; leave the flag out",
    );
  }
  if (projectionSize !== undefined) {
    const shape = { inputs: width, outputs: projectionSize, bias: false };
    const forward = storedProjection(checkpoint, shape, computeDtype);
    return { outputSize: projectionSize, endsNormalized: normalized, forward };
  }
  const modules = tokenModules(checkpoint);
  for (const { type, path } of modules) {
    if (type === "Normalize") {
      readJson(join(checkpoint.directory, path, "config.json"), tokenNormalizeFile);
    }
  }
  const { endsNormalized, ...steps } = vectorSteps(checkpoint, modules, {
    ...{ feature: "token_embeddings", width, computeDtype },
  });
  return { ...steps, endsNormalized: endsNormalized || normalized };
}

/** `linear` among the tensors of the network. */
function storedProjection(
  { transformerDirectory }: Checkpoint,
  shape: LinearShape,
  computeDtype: WeightsOptions["computeDtype"],
): VectorStep {
  const weights = Weights.open(transformerDirectory, { prefixes: [], computeDtype });
  const project = linear(weights, "linear", shape);
  weights.close();
  return (vectors) => mx.astype(project(vectors), "float32");
}

/** Left to itself the module works on pooled vectors. */
const tokenNormalizeFile = z.looseObject({ module_input_name: z.literal("token_embeddings") });

/** [n, in] -> [n, out] */
type VectorStep = (vectors: Tensor) => Tensor;

interface StepOptions {
  readonly feature: Feature;
  /** Of the vectors that come in. */
  readonly width: number;
  readonly computeDtype: WeightsOptions["computeDtype"];
}

/** Dense and Normalize modules, one after the other; all but a closing Normalize. */
function vectorSteps(
  { directory }: Checkpoint,
  modules: readonly ModuleEntry[],
  { feature, width, computeDtype }: StepOptions,
) {
  const endsNormalized = modules.at(-1)?.type === "Normalize";
  const inGraph = endsNormalized ? modules.slice(0, -1) : modules;
  let outputSize = width;
  const steps = inGraph.map((module): VectorStep => {
    if (module.type === "Normalize") return l2Normalized;
    const dense = loadDense(join(directory, module.path), feature, computeDtype);
    if (dense.inputs !== outputSize) {
      throw new CheckpointError(
        `${module.path}/config.json: in_features is ${dense.inputs}, but ${outputSize} come in`,
      );
    }
    outputSize = dense.outputs;
    return dense.forward;
  });
  const forward: VectorStep = (vectors) =>
    mx.astype(
      steps.reduce((x, step) => step(x), vectors),
      "float32",
    );
  return { outputSize, endsNormalized, forward };
}

interface SplitChain {
  readonly pooling?: ModuleEntry | undefined;
  /** Dense and Normalize modules, in the order of the chain. */
  readonly vectorModules: readonly ModuleEntry[];
}

function splitChain({ modules, directory }: Checkpoint): SplitChain {
  const normalize: ModuleEntry = { type: "Normalize", path: "" };
  if (!modules) {
    const hasPooling = isFile(join(directory, POOLING_FOLDER, "config.json"));
    const pooling: ModuleEntry = { type: "Pooling", path: POOLING_FOLDER };
    return { pooling: hasPooling ? pooling : undefined, vectorModules: [normalize] };
  }
  const [transformer, pooling, ...vectorModules] = modules;
  if (
    transformer?.type === "Transformer" &&
    pooling?.type === "Pooling" &&
    vectorModules.every(isVectorModule)
  ) {
    return { pooling, vectorModules };
  }
  throw unsupportedChain(modules, "Transformer, Pooling, then Dense or Normalize modules");
}

/** Dense and Normalize modules of a chain without Pooling. Which vectors a MultiVectorMask drops is not their matter. */
function tokenModules({ modules, directory }: Checkpoint): readonly ModuleEntry[] {
  if (!modules) {
    throw new CheckpointError(
      `${join(directory, "modules.json")} is missing, which says how token vectors are made; download it again`,
    );
  }
  const [transformer, ...others] = modules;
  const vectorModules = others.filter(({ type }) => type !== "MultiVectorMask");
  if (transformer?.type === "Transformer" && vectorModules.every(isVectorModule)) {
    return vectorModules;
  }
  throw unsupportedChain(modules, "Transformer, then Dense, Normalize or MultiVectorMask modules");
}

function isVectorModule({ type }: ModuleEntry): boolean {
  return type === "Dense" || type === "Normalize";
}

function unsupportedChain(modules: readonly ModuleEntry[], wanted: string): CheckpointError {
  const listed = modules.map(({ type }) => type).join(", ");
  return new CheckpointError(
    `modules.json: the chain ${listed} is not supported; it must be ${wanted}`,
  );
}

/** x / |x|; a zero vector stays zero. */
function l2Normalized(vectors: Tensor): Tensor {
  const length = mx.sqrt(mx.sum(mx.square(vectors), 1, true));
  return mx.divide(vectors, mx.maximum(length, mx.scalar(1e-12)));
}
