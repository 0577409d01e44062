import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { Activation } from "./activations.ts";
import { gatedMlp, type GatedMlpNames } from "./gated-mlp.ts";
import { residualLinear, type ResidualLinear } from "./linear.ts";
import { mlp, type MlpNames } from "./mlp.ts";
import { layerNorm } from "./norms.ts";

/** Names of the tensors behind the attention, without `.weight` and `.bias`. */
export interface PostNormNames {
  readonly attentionOutput: string;
  readonly attentionNorm: string;
  readonly mlp: MlpNames | GatedMlpNames;
  readonly mlpNorm: string;
}

export interface PostNormShape {
  readonly width: number;
  readonly inner: number;
  readonly activation: Activation;
  /** Of the norms. */
  readonly eps: number;
  readonly attentionBias: boolean;
  readonly mlpBias: boolean;
  /** Of the last layer of a gated MLP; absent: as `mlpBias`. */
  readonly downBias?: boolean | undefined;
}

/**
 * A layer as in Vaswani et al. 2017, each half of which ends in LayerNorm(x + f(x)): [N, width] -> [N, width].
 * `context` is what the attention needs to know of the batch.
 */
export function postNormLayer<Context extends readonly unknown[]>(
  weights: Weights,
  attention: (x: Tensor, ...context: Context) => Tensor,
  names: PostNormNames,
  shape: PostNormShape,
): (x: Tensor, ...context: Context) => Tensor {
  const { width, eps, attentionBias: bias } = shape;
  const attentionOutput = residualLinear(weights, names.attentionOutput, {
    ...{ inputs: width, outputs: width, bias },
    norm: layerNorm(weights, names.attentionNorm, width, eps),
  });
  const mlpHalf = mlpHalfOf(weights, names, shape);
  return (x, ...context) => {
    const attended = attentionOutput(attention(x, ...context), x);
    return mlpHalf(attended, attended);
  };
}

function mlpHalfOf(weights: Weights, names: PostNormNames, shape: PostNormShape): ResidualLinear {
  const { width, inner, activation, eps, mlpBias: bias, downBias } = shape;
  const norm = layerNorm(weights, names.mlpNorm, width, eps);
  return "down" in names.mlp
    ? gatedMlp(weights, names.mlp, { width, inner, bias, downBias, activation, norm })
    : mlp(weights, names.mlp, { width, inner, bias, activation, norm });
}
