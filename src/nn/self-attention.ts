import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import type { Weights } from "../checkpoint/weights.ts";
import type { RowAttention } from "./attention.ts";
import { kernelsFor } from "./kernels.ts";
import { linear, type Linear, packedLayer } from "./linear.ts";
import type { Rotations } from "./rope.ts";

interface SelfAttentionShape {
  readonly inputs: number;
  /** heads * headDim */
  readonly outputs: number;
  readonly bias: boolean;
}

/** Names of the tensors without `.weight` and `.bias`; one `queryKeyValue` holds the rows of all three in this order. */
export type ProjectionNames =
  | { readonly query: string; readonly key: string; readonly value: string }
  | { readonly queryKeyValue: string };

/** [N, inputs] -> [N, outputs]. With `rotate`, queries and keys are turned to their positions. */
export type SelfAttention = (x: Tensor, attend: RowAttention, rotate?: Rotations) => Tensor;

/** Attention, and its projections of other rows [M, inputs] -> [M, outputs] each. */
interface ProjectedAttention extends SelfAttention {
  (...args: Parameters<SelfAttention>): Tensor;
  project(rows: Tensor): QueryKeyValue;
}

/** Attention of three projections of x, with as many key/value heads as heads. */
export function selfAttention(
  weights: Weights,
  names: ProjectionNames,
  shape: SelfAttentionShape,
): ProjectedAttention {
  const kernels = kernelsFor(weights, Object.values(names));
  if (kernels) {
    const joint = "queryKeyValue" in names;
    const layer = joint
      ? packedLayer(kernels, weights, [names.queryKeyValue], threefold(shape))
      : packedLayer(kernels, weights, [names.query, names.key, names.value], shape);
    const project = (x: Tensor) => thirds(kernels.linear(x, layer));
    const run: SelfAttention = (x, attend, rotate) => {
      const rows = rotate ? undefined : attend.kernelRows(shape.outputs);
      return rows ? kernels.selfAttention(x, layer, rows) : attendTo(project(x), attend, rotate);
    };
    return Object.assign(run, { project });
  }
  const project = projections(weights, names, shape);
  const run: SelfAttention = (x, attend, rotate) => attendTo(project(x), attend, rotate);
  return Object.assign(run, { project });
}

/** [N, outputs] each. */
type QueryKeyValue = readonly [query: Tensor, key: Tensor, value: Tensor];

function attendTo(
  [query, key, value]: QueryKeyValue,
  attend: RowAttention,
  rotate: Rotations | undefined,
): Tensor {
  if (!rotate) return attend(query, key, value);
  return attend(rotate.queries(query), rotate.keys(key), value);
}

function projections(
  weights: Weights,
  names: ProjectionNames,
  shape: SelfAttentionShape,
): (x: Tensor) => QueryKeyValue {
  if ("queryKeyValue" in names) {
    const joint: Linear = linear(weights, names.queryKeyValue, threefold(shape));
    return (x) => thirds(joint(x));
  }
  const [query, key, value] = [names.query, names.key, names.value].map((name) =>
    linear(weights, name, shape),
  );
  return (x) => [query!(x), key!(x), value!(x)];
}

/** [N, 3 * outputs] -> three times [N, outputs] */
function thirds(joint: Tensor): QueryKeyValue {
  const [query, key, value] = mx.split(joint, 3, 1);
  return [query!, key!, value!];
}

function threefold(shape: SelfAttentionShape): SelfAttentionShape {
  return { ...shape, outputs: 3 * shape.outputs };
}
