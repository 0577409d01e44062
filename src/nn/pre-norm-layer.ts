import type { Tensor } from "../../ffi/index.ts";
import type { ResidualLinear } from "./linear.ts";
import type { Norm } from "./norms.ts";

interface PreNormParts<Context extends readonly unknown[]> {
  readonly attentionNorm: Norm;
  readonly attention: (x: Tensor, ...context: Context) => Tensor;
  readonly attentionOutput: ResidualLinear;
  readonly mlpNorm: Norm;
  readonly mlp: ResidualLinear;
}

/**
 * A layer each half of which adds f(norm(x)) to x (Xiong et al. 2020): [N, width] -> [N, width]. `context` is what the
 * attention needs to know of the batch.
 */
export function preNormLayer<Context extends readonly unknown[]>(
  parts: PreNormParts<Context>,
): (x: Tensor, ...context: Context) => Tensor {
  const { attentionNorm, attention, attentionOutput, mlpNorm, mlp } = parts;
  return (x, ...context) => {
    const attended = attentionOutput(attention(attentionNorm(x), ...context), x);
    return mlp(mlpNorm(attended), attended);
  };
}
