import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { RowAttention } from "./attention.ts";
import { kernelsFor } from "./kernels.ts";
import { linear, packedLayer } from "./linear.ts";

export interface SelfAttentionShape {
  readonly inputs: number;
  /** heads * headDim */
  readonly outputs: number;
  readonly bias: boolean;
}

/** [N, inputs] -> [N, outputs]. */
export type SelfAttention = (x: Tensor, attend: RowAttention) => Tensor;

/** Attention of the projections `<name>.query`, `.key` and `.value` of x as they are, without rotations. */
export function selfAttention(
  weights: Weights,
  name: string,
  shape: SelfAttentionShape,
): SelfAttention {
  const names = ["query", "key", "value"].map((part) => `${name}.${part}`);
  const kernels = kernelsFor(weights);
  if (kernels) {
    const layer = packedLayer(kernels, weights, names, shape);
    return (x, attend) => {
      const rows = attend.kernelRows(shape.outputs);
      if (rows) return kernels.selfAttention(x, layer, rows);
      // [N, 3 * outputs] -> 3 x [N, outputs]
      const [query, key, value] = mx.split(kernels.linear(x, layer), 3, 1);
      return attend(query!, key!, value!);
    };
  }
  const [query, key, value] = names.map((part) => linear(weights, part, shape));
  return (x, attend) => attend(query!(x), key!(x), value!(x));
}
