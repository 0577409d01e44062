/**
 * How a vector is normalised, in llama-server's numbering: -1 not at all, 0 divide by max|v| and multiply by
 * 32760, 1 by the L1 norm, 2 by the L2 norm, n > 2 by the n-norm.
 */
export type NormalizeMode = number;

/** The number of L2, which is what a Normalize module does. */
export const L2: NormalizeMode = 2;
export const UNNORMALIZED: NormalizeMode = -1;

/** What mode 0 scales the largest component to: just below the range of a signed 16-bit number. */
const MAX_NORM_PEAK = 32760;

/** A normalised copy of `vector`, summed in f64. A zero vector stays zero. */
export function normalized(vector: Float32Array, mode: NormalizeMode): Float32Array<ArrayBuffer> {
  const scale = scaleFor(vector, mode);
  const result = new Float32Array(vector.length);
  for (let i = 0; i < vector.length; i++) result[i] = vector[i]! * scale;
  return result;
}

function scaleFor(vector: Float32Array, mode: NormalizeMode): number {
  if (mode === UNNORMALIZED) return 1;
  const length = mode === L2 ? euclideanLength(vector) : lengthBy(vector, mode);
  if (length === 0) return 0;
  return (mode === 0 ? MAX_NORM_PEAK : 1) / length;
}

/** In f64 no square of an f32 over- or underflows. */
function euclideanLength(vector: Float32Array): number {
  let sum = 0;
  for (const component of vector) sum += component * component;
  return Math.sqrt(sum);
}

/** The largest component for mode 0, else Σ(|v|^n)^(1/n), relative to the peak so that no power over- or underflows. */
function lengthBy(vector: Float32Array, n: NormalizeMode): number {
  let peak = 0;
  for (const component of vector) peak = Math.max(peak, Math.abs(component));
  if (n === 0 || peak === 0) return peak;
  let sum = 0;
  for (const component of vector) sum += Math.abs(component / peak) ** n;
  return peak * sum ** (1 / n);
}
