import { join } from "node:path";
import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Checkpoint, ModuleEntry } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import { isFile } from "../checkpoint/regular-file.ts";
import type { WeightsOptions } from "../checkpoint/weights.ts";
import { loadDense } from "./dense.ts";
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
  readonly pooling: Pooling;
  /** Width of the vectors. */
  readonly outputSize: number;
  /** The chain closes with a Normalize module, which `forward` leaves to the caller. */
  readonly endsNormalized: boolean;
  /** [N, H] f32 -> [B, outputSize] f32, before a closing Normalize. */
  forward(hidden: Tensor, rows: PooledRows): Tensor;
}

/** [B, in] -> [B, out] */
type VectorStep = (vectors: Tensor) => Tensor;

/** Folder of the Pooling module in repositories that lack modules.json. */
const POOLING_FOLDER = "1_Pooling";

/**
 * Builds the chain that modules.json lists, in its order; without that file the pooling of 1_Pooling or the family,
 * and L2. Throws CheckpointError naming the module that does not fit.
 */
export function loadModuleChain(checkpoint: Checkpoint, options: ChainOptions): ModuleChain {
  const { pooling: poolingModule, vectorModules } = splitChain(checkpoint);
  const stored: Pooling = poolingModule
    ? readPooling(join(checkpoint.directory, poolingModule.path))
    : { modes: [options.defaultPooling], includePrompt: true };
  const pooling = options.pooling ? { ...stored, modes: [options.pooling] } : stored;
  const endsNormalized = vectorModules.at(-1)?.type === "Normalize";
  const inGraph = endsNormalized ? vectorModules.slice(0, -1) : vectorModules;

  let width = options.hiddenSize * pooling.modes.length;
  const steps = inGraph.map((module): VectorStep => {
    if (module.type === "Normalize") return l2Normalized;
    const dense = loadDense(join(checkpoint.directory, module.path), options.computeDtype);
    if (dense.inputs !== width) {
      throw new CheckpointError(
        `${module.path}/config.json: in_features is ${dense.inputs}, but ${width} come in`,
      );
    }
    width = dense.outputs;
    return dense.forward;
  });
  return {
    pooling,
    outputSize: width,
    endsNormalized,
    forward(hidden, rows) {
      const pooled = pool(hidden, rows, pooling);
      return mx.astype(
        steps.reduce((vectors, step) => step(vectors), pooled),
        "float32",
      );
    },
  };
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
  const usable =
    transformer?.type === "Transformer" &&
    pooling?.type === "Pooling" &&
    vectorModules.every(({ type }) => type === "Dense" || type === "Normalize");
  if (usable) return { pooling, vectorModules };
  const listed = modules.map(({ type }) => type).join(", ");
  throw new CheckpointError(
    `modules.json: the chain ${listed} is not supported; it must be Transformer, Pooling, then Dense or Normalize modules`,
  );
}

/** x / |x|; a zero vector stays zero. */
function l2Normalized(vectors: Tensor): Tensor {
  const length = mx.sqrt(mx.sum(mx.square(vectors), 1, true));
  return mx.divide(vectors, mx.maximum(length, mx.scalar(1e-12)));
}
