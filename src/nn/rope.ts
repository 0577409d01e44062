import * as mx from "../../ffi/index.ts";
import type { Tensor } from "../../ffi/index.ts";
import { kernelsOn } from "./kernels.ts";

/** [N, heads * headDim] -> the same, each head turned by the angle of its token's position. */
type Rotation = (x: Tensor) => Tensor;

/** [headDim / 2] theta^(-2i/headDim), the turn per position of each pair (Su et al. 2021, section 3.2.2). */
export function inverseFrequencies(headDim: number, theta: number): Float32Array {
  return Float32Array.from({ length: headDim / 2 }, (_, i) => theta ** ((-2 * i) / headDim));
}

/** What the turned heads of a token are multiplied by. */
export type PositionFactor = (position: number) => number;

/** A rotary embedding that may also scale what it turns. */
export interface Rope {
  /** [headDim / 2] */
  readonly frequencies: Float32Array;
  /** On queries and keys; absent: 1. */
  readonly factor?: number | undefined;
  /** On queries, in addition; absent: 1. */
  readonly queryFactor?: PositionFactor | undefined;
}

/** The rotations of queries and of keys, one and the same unless queries are scaled by their position. */
export interface Rotations {
  readonly queries: Rotation;
  readonly keys: Rotation;
}

/** Build it once per forward and rope, as `rotation`. */
export function rotations(positions: Int32Array, rope: Rope): Rotations {
  const { frequencies, factor = 1, queryFactor } = rope;
  const keys = rotation(positions, frequencies, () => factor);
  if (!queryFactor) return { queries: keys, keys };
  const queries = rotation(positions, frequencies, (position) => factor * queryFactor(position));
  return { queries, keys };
}

/**
 * Rotary position embedding in the half-split form: component i of a head pairs with component i + headDim/2.
 * `positions`: [N], one per token, of rows of any length; `frequencies`: [headDim / 2]. Build it once per forward
 * and set of frequencies, and use it in every layer: its tables live in the scope that it was built in. Computes in
 * f32 and returns the dtype of its input.
 */
export function rotation(
  positions: Int32Array,
  frequencies: Float32Array,
  factor: PositionFactor = () => 1,
): Rotation {
  const half = frequencies.length;
  const { cos, sin } = angleTables(positions, frequencies, factor);
  // [N, 1, 1, half] -> [N, half], views
  const [cosines, sines] = [mx.reshape(cos, [-1, half]), mx.reshape(sin, [-1, half])];
  return (x) => {
    const kernels = kernelsOn(x);
    if (kernels) return kernels.rope(x, cosines, sines);
    const [total, features] = [x.shape[0]!, x.shape[1]!];
    // [N, heads * headDim] -> [N, heads, 2, half]
    const pairs = mx.reshape(x, [total, features / (2 * half), 2, half]);
    const [a, b] = mx.split(pairs, 2, 2);
    const turned = mx.concatenate(
      [
        mx.subtract(mx.multiply(a!, cos), mx.multiply(b!, sin)),
        mx.add(mx.multiply(b!, cos), mx.multiply(a!, sin)),
      ],
      2,
    );
    return mx.astype(mx.reshape(turned, [total, features]), x.dtype);
  };
}

/** Both [N, 1, 1, half] f32. Rows repeat the same positions, so each one is computed once. */
function angleTables(positions: Int32Array, frequencies: Float32Array, factor: PositionFactor) {
  const half = frequencies.length;
  const distinct = [...new Set(positions)];
  const placeOf = new Map(distinct.map((position, place) => [position, place]));
  const places = positions.map((position) => placeOf.get(position)!);
  const indices = mx.fromInt32(places, [places.length, 1, 1]);
  const table = (wave: (angle: number) => number): Tensor => {
    const values = new Float32Array(distinct.length * half);
    distinct.forEach((position, place) => {
      const scale = factor(position);
      for (let i = 0; i < half; i++) {
        // The angle is rounded to f32 as in the reference implementations.
        values[place * half + i] = scale * wave(Math.fround(position * frequencies[i]!));
      }
    });
    // [positions, half] -> [N, 1, 1, half]
    return mx.take(mx.fromFloat32(values, [distinct.length, half]), indices, 0);
  };
  return { cos: table(Math.cos), sin: table(Math.sin) };
}
