import { setBlasThreads } from "./blas.ts";
import { MlxError } from "./error.ts";
import { nativeKernels } from "./library.ts";
import { optionalTensor } from "./optional.ts";
import { slot } from "./slot.ts";
import { openDevice, stream } from "./stream.ts";
import { pointer, result, type Tensor } from "./tensor.ts";

const activationNumbers = { identity: 0, gelu: 1, geluTanh: 2, relu: 3, silu: 4, tanh: 5 } as const;

/** Element-wise functions that a kernel can apply. */
export type ActivationKind = keyof typeof activationNumbers;

/** A linear layer whose weights were packed. */
export interface PackedLayer {
  /** From `pack`. */
  readonly weight: Tensor;
  /** [outputs] */
  readonly bias?: Tensor | undefined;
  readonly outputs: number;
}

export interface NormParameters {
  /** [width] */
  readonly weight: Tensor;
  /** [width] */
  readonly bias?: Tensor | undefined;
  readonly eps: number;
}

/**
 * What disentangled attention adds to the scores of queries and keys, before the scale: q · keys[row] and
 * k · queries[row] for the row of the distance from q to k.
 */
export interface Distances {
  /** [R, heads * headDim] */
  readonly keys: Tensor;
  /** [R, heads * headDim] */
  readonly queries: Tensor;
  /** [2 * span - 1] at key - query + span - 1: the row of both tables. No row of tokens is longer than `span`. */
  readonly rows: Int32Array;
}

export interface AttentionRows {
  /** [B] tokens per row. */
  readonly lengths: Int32Array;
  /** [B] leading tokens of each row that are keys, at least one; absent: all. */
  readonly attended?: Int32Array | undefined;
  readonly heads: number;
  /** A divisor of `heads`. */
  readonly kvHeads: number;
  /** Factor on q·k, positive. */
  readonly scale: number;
  /** Keys after the query are hidden. */
  readonly causal?: boolean;
  /** Keys further away than this are hidden. */
  readonly radius?: number | undefined;
  /**
   * [heads, 2 * span - 1], added to the scaled scores: column key - query + span - 1. No row is longer than `span`, its
   * past included.
   */
  readonly relativeBias?: Tensor | undefined;
  /** Only with as many key/value heads as heads, and without a past. */
  readonly distances?: Distances | undefined;
  /** [P, kvHeads * headDim] each: tokens that every row continues. Only with `causal`. */
  readonly past?: { readonly keys: Tensor; readonly values: Tensor } | undefined;
}

/** As many key/value heads as heads, and no past. */
type SelfAttentionRows = Omit<AttentionRows, "kvHeads" | "past">;

interface MlpLayers {
  readonly gate: PackedLayer;
  readonly up?: PackedLayer | undefined;
  readonly down: PackedLayer;
  readonly activation: ActivationKind;
}

interface LookUp {
  /** [N] or [1] int32. The caller has checked that they lie within the table. */
  readonly indices: Tensor;
  /** [rows, width] */
  readonly table: Tensor;
}

/** Attention by kernels takes no wider heads. */
export const MAX_KERNEL_HEAD_DIM = 512;

const UNLIMITED = -1;
const noLengths = new Int32Array(1);

/** Fused and vectorised operations on f32 tensors. They check shapes and throw MlxError; results are lazy. */
export class Kernels {
  readonly #native: NonNullable<typeof nativeKernels>;

  constructor(native: NonNullable<typeof nativeKernels>) {
    this.#native = native;
  }

  /** Weights [outputs, inputs] in the layout that the products below want; for this machine only. */
  pack(weight: Tensor): Tensor {
    return result("pack", this.#native.mlxcel_pack(slot, pointer(weight), stream()));
  }

  /** activation(x·Wᵀ + bias): [N, inputs] -> [N, outputs]. */
  linear(x: Tensor, layer: PackedLayer, activation: ActivationKind = "identity"): Tensor {
    const { weight, bias, outputs } = layer;
    const kind = activationNumbers[activation];
    return result(
      "linear",
      this.#native.mlxcel_linear(
        slot,
        pointer(x),
        pointer(weight),
        outputs,
        optionalTensor(bias),
        kind,
        stream(),
      ),
    );
  }

  /** residual + x·Wᵀ + bias, or its LayerNorm: x [N, inputs] and residual [N, outputs] -> [N, outputs]. */
  linearResidual(
    x: Tensor,
    { weight, bias }: PackedLayer,
    residual: Tensor,
    norm?: NormParameters,
  ): Tensor {
    return result(
      "linearResidual",
      this.#native.mlxcel_linear_residual(
        slot,
        pointer(x),
        pointer(weight),
        optionalTensor(bias),
        pointer(residual),
        optionalTensor(norm?.weight),
        optionalTensor(norm?.bias),
        norm?.eps ?? 0,
        stream(),
      ),
    );
  }

  /**
   * residual + down(activation(gate(x)) · up(x)), or its LayerNorm; without `up` residual + down(activation(gate(x))).
   * x and residual [N, width] -> [N, width].
   */
  mlp(x: Tensor, layers: MlpLayers, residual: Tensor, norm?: NormParameters): Tensor {
    const { gate, up, down, activation } = layers;
    return result(
      "mlp",
      this.#native.mlxcel_mlp(
        slot,
        pointer(x),
        pointer(gate.weight),
        optionalTensor(gate.bias),
        optionalTensor(up?.weight),
        optionalTensor(up?.bias),
        gate.outputs,
        activationNumbers[activation],
        pointer(down.weight),
        optionalTensor(down.bias),
        pointer(residual),
        optionalTensor(norm?.weight),
        optionalTensor(norm?.bias),
        norm?.eps ?? 0,
        stream(),
      ),
    );
  }

  /** activation(gate(x)) · up(x): [N, inputs] -> [N, outputs]. */
  gatedLinear(x: Tensor, gate: PackedLayer, up: PackedLayer, activation: ActivationKind): Tensor {
    return result(
      "gatedLinear",
      this.#native.mlxcel_gated_linear(
        slot,
        pointer(x),
        pointer(gate.weight),
        pointer(up.weight),
        gate.outputs,
        optionalTensor(gate.bias),
        optionalTensor(up.bias),
        activationNumbers[activation],
        stream(),
      ),
    );
  }

  /** Attention within each row: q [N, heads * headDim], k and v [N, kvHeads * headDim] -> the shape of q. */
  attention(q: Tensor, k: Tensor, v: Tensor, rows: AttentionRows): Tensor {
    const { lengths, heads, kvHeads, scale, causal = false, radius = UNLIMITED, past } = rows;
    const { attended = lengths } = rows;
    return result(
      "attention",
      this.#native.mlxcel_attention(
        slot,
        pointer(q),
        pointer(k),
        pointer(v),
        optionalTensor(past?.keys),
        optionalTensor(past?.values),
        addressable(lengths),
        addressable(attended),
        lengths.length,
        heads,
        kvHeads,
        scale,
        causal,
        radius,
        optionalTensor(rows.relativeBias),
        ...distanceArguments(rows.distances),
        stream(),
      ),
    );
  }

  /**
   * Attention within each row, of queries, keys and values that a layer computes side by side:
   * x [N, width] -> [N, layer.outputs / 3].
   */
  selfAttention(x: Tensor, layer: PackedLayer, rows: SelfAttentionRows): Tensor {
    const { lengths, heads, scale, causal = false, radius = UNLIMITED } = rows;
    const { attended = lengths } = rows;
    return result(
      "selfAttention",
      this.#native.mlxcel_self_attention(
        slot,
        pointer(x),
        pointer(layer.weight),
        layer.outputs,
        optionalTensor(layer.bias),
        addressable(lengths),
        addressable(attended),
        lengths.length,
        heads,
        scale,
        causal,
        radius,
        optionalTensor(rows.relativeBias),
        ...distanceArguments(rows.distances),
        stream(),
      ),
    );
  }

  /** LayerNorm of each row of x [N, width]. */
  layerNorm(x: Tensor, { weight, bias, eps }: NormParameters): Tensor {
    return result(
      "layerNorm",
      this.#native.mlxcel_layer_norm(
        slot,
        pointer(x),
        pointer(weight),
        optionalTensor(bias),
        eps,
        stream(),
      ),
    );
  }

  /** RMSNorm of each row of x [N, width]. */
  rmsNorm(x: Tensor, weight: Tensor, eps: number): Tensor {
    return result(
      "rmsNorm",
      this.#native.mlxcel_rms_norm(slot, pointer(x), pointer(weight), eps, stream()),
    );
  }

  /** Turns each head of x [N, heads * headDim]; cos and sin [N, headDim / 2]. */
  rope(x: Tensor, cos: Tensor, sin: Tensor): Tensor {
    return result(
      "rope",
      this.#native.mlxcel_rope(slot, pointer(x), pointer(cos), pointer(sin), stream()),
    );
  }

  /** The sum of one to three look-ups per token, normalised by `norm`: [N, width]. */
  embed(lookUps: readonly LookUp[], norm?: NormParameters): Tensor {
    const [first, second, third] = lookUps;
    if (!first || lookUps.length > 3) {
      throw new MlxError("embed", `takes one to three look-ups, not ${lookUps.length}`);
    }
    return result(
      "embed",
      this.#native.mlxcel_embed(
        slot,
        pointer(first.indices),
        pointer(first.table),
        optionalTensor(second?.indices),
        optionalTensor(second?.table),
        optionalTensor(third?.indices),
        optionalTensor(third?.table),
        optionalTensor(norm?.weight),
        optionalTensor(norm?.bias),
        norm?.eps ?? 0,
        stream(),
      ),
    );
  }

  /** Σ weights[n] x[n] over the tokens of each row: x [N, width], weights [N] -> [B, width]. */
  pool(x: Tensor, weights: Tensor, lengths: Int32Array): Tensor {
    return result(
      "pool",
      this.#native.mlxcel_pool(
        slot,
        pointer(x),
        pointer(weights),
        addressable(lengths),
        lengths.length,
        stream(),
      ),
    );
  }

  /** Element-wise; the shape stays. */
  activate(x: Tensor, activation: ActivationKind): Tensor {
    const kind = activationNumbers[activation];
    return result("activate", this.#native.mlxcel_activate(slot, pointer(x), kind, stream()));
  }
}

function distanceArguments(distances: Distances | undefined) {
  const rows = distances?.rows ?? noLengths;
  const count = distances ? rows.length : 0;
  return [
    optionalTensor(distances?.keys),
    optionalTensor(distances?.queries),
    addressable(rows),
    count,
  ] as const;
}

// An empty typed array has no address.
function addressable(lengths: Int32Array): Int32Array {
  return lengths.length === 0 ? noLengths : lengths;
}

/** `off`, or the name of an instruction set instead of the best one. */
const SETTING = "MLXCEL_KERNELS";

function available(): Kernels | undefined {
  const setting = process.env[SETTING];
  if (!nativeKernels || setting === "off") return undefined;
  if (setting && !nativeKernels.mlxcel_use_instruction_set(setting)) {
    throw new MlxError(
      SETTING,
      `"${setting}" is not known or beyond this CPU; off, baseline, avx2 and avx512 are names`,
    );
  }
  // What is left to OpenBLAS is small. Its threads would wait awake, on the cores that the kernels use.
  setBlasThreads(1);
  return new Kernels(nativeKernels);
}

const cpuKernels = available();

/** The kernels where this thread computes on the CPU with our own native library; else undefined. */
export function kernels(): Kernels | undefined {
  return cpuKernels && openDevice("auto") === "cpu" ? cpuKernels : undefined;
}

/** Threads that work on one kernel; undefined where there are no kernels. */
export function kernelThreads(): number | undefined {
  return cpuKernels && nativeKernels?.mlxcel_kernel_threads();
}

/** Sets the threads of the whole process; at first they are its physical cores. */
export function setKernelThreads(count: number): void {
  nativeKernels?.mlxcel_set_kernel_threads(count);
}

/**
 * From now on, in the whole process, `pack` rounds weights to bf16, and products round the other factor, too; sums stay
 * f32. Layers that were packed before are refused. False, and without effect, where there are no kernels, where
 * MLXCEL_KERNELS chooses some, and where the CPU has no instructions for it.
 */
export function packWeightsAsBf16(): boolean {
  if (!kernels() || process.env[SETTING]) return false;
  return nativeKernels?.mlxcel_use_bf16_weights() ?? false;
}

/** The instructions that the kernels use; undefined where there are no kernels. */
export function instructionSet(): string | undefined {
  return (cpuKernels && nativeKernels?.mlxcel_instruction_set()) ?? undefined;
}
