import * as mx from "../../ffi/index.ts";
import { CheckpointError } from "../checkpoint/error.ts";
import type { GgufModel } from "../checkpoint/gguf/model.ts";
import { GgufTensors } from "../checkpoint/gguf/tensors.ts";
import { Weights } from "../checkpoint/weights.ts";
import { linear, type Linear } from "../nn/linear.ts";
import type { ChainOptions, ModuleChain } from "./modules.ts";
import { pool, type PoolingMode } from "./pooling.ts";

/**
 * What turns hidden states into vectors for a GGUF file: its pooling, its projections, L2. Throws CheckpointError where
 * it pools in no way, and for a projection that does not fit.
 */
export function ggufChain(gguf: GgufModel, options: ChainOptions): ModuleChain {
  const modes = [options.pooling ?? poolingOf(gguf) ?? options.defaultPooling];
  const pooling = { modes, includePrompt: true };
  const { outputSize, steps } = projections(gguf, options);
  return {
    pooling,
    outputSize,
    endsNormalized: true,
    forward: (hidden, rows) =>
      mx.astype(
        steps.reduce((x, step) => step(x), pool(hidden, rows, pooling)),
        "float32",
      ),
  };
}

/** undefined: the file does not say. */
function poolingOf({ pooling, header }: GgufModel): PoolingMode | undefined {
  if (pooling !== "none" && pooling !== "rank") return pooling;
  throw new CheckpointError(
    `${header.path} states the pooling "${pooling}", which makes no vector of a text; choose one by --pooling`,
  );
}

function projections({ header, architecture, ...gguf }: GgufModel, options: ChainOptions) {
  const { computeDtype, hiddenSize } = options;
  const names = (architecture.projections ?? []).filter((name) =>
    header.tensors.has(`${name}.weight`),
  );
  let outputSize = hiddenSize;
  if (names.length === 0) return { outputSize, steps: [] };
  const files = new GgufTensors({ header, architecture, ...gguf }, computeDtype);
  const weights = new Weights(files, { prefixes: [], computeDtype });
  const steps = names.map((name): Linear => {
    const [outputs = 0] = header.tensors.get(`${name}.weight`)?.shape ?? [];
    const bias = header.tensors.has(`${name}.bias`);
    const step = linear(weights, name, { inputs: outputSize, outputs, bias });
    outputSize = outputs;
    return step;
  });
  weights.close();
  return { outputSize, steps };
}
