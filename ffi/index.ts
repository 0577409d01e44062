/**
 * MLX through its C interface: tensors, operations, files and memory. Only the modules of this directory see a
 * pointer; everything else imports this one, `import * as mx from "…/ffi/index.ts"`.
 *
 * Operations build a graph; `evaluate` or reading a tensor computes it. Each thread has its own device stream and
 * uses only tensors that it made. Tensors live in a `scope`, weights are taken out of it by `keep`.
 */
export {
  abs,
  add,
  cos,
  divide,
  erf,
  exp,
  maximum,
  multiply,
  sigmoid,
  sin,
  sqrt,
  square,
  subtract,
  tanh,
} from "./arithmetic.ts";
export { blasThreads, setBlasThreads } from "./blas.ts";
export {
  greaterEqual,
  isFinite,
  less,
  lessEqual,
  logicalAnd,
  logicalOr,
  where,
} from "./comparison.ts";
export {
  arange,
  astype,
  fromFloat32,
  fromInt32,
  fromUint32,
  ones,
  scalar,
  written,
  zeros,
} from "./creation.ts";
export { deviceName } from "./device-name.ts";
export type { Dtype } from "./dtype.ts";
export { installErrorHandler, MlxError } from "./error.ts";
export { asyncEvaluate, evaluate } from "./evaluate.ts";
export { type AttentionMask, layerNorm, rmsNorm, rope, scaledDotProductAttention } from "./fast.ts";
export { slice, take, takeAlongAxis } from "./indexing.ts";
export {
  type ActivationKind,
  type AttentionRows,
  type Distances,
  instructionSet,
  type Kernels,
  kernels,
  kernelThreads,
  MAX_KERNEL_HEAD_DIM,
  type NormParameters,
  type PackedLayer,
  packWeightsAsBf16,
  setKernelThreads,
} from "./kernels.ts";
export {
  broadcastTo,
  concatenate,
  contiguous,
  expandDims,
  reshape,
  split,
  transpose,
} from "./layout.ts";
export { libraryPath } from "./library.ts";
export {
  activeBytes,
  cacheBytes,
  clearCache,
  peakBytes,
  resetPeak,
  setCacheLimit,
  setMemoryLimit,
} from "./memory.ts";
export { asPhase, clockOperations } from "./operation-clock.ts";
export { addmm, matmul } from "./product.ts";
export {
  dequantize,
  dequantizeRows,
  FP8_SCALES_AT_ONCE,
  type Packing,
  type QuantizationMode,
  quantize,
  type Quantized,
  quantizedMatmul,
} from "./quantization.ts";
export { all, max, mean, softmax, sum } from "./reduction.ts";
export { loadSafetensors, saveSafetensors } from "./safetensors.ts";
export { keep, scope } from "./scope.ts";
export { type Device, metalAvailable, openDevice } from "./stream.ts";
export { Tensor } from "./tensor.ts";
export { versions } from "./versions.ts";
