import { inverseFrequencies, type PositionFactor, type Rope } from "./rope.ts";

/** How a model stretches its rotary embedding over longer texts than it was first trained with. */
export type RopeScaling =
  | { readonly kind: "default" }
  /** Positions are divided by the factor (Chen et al. 2023). */
  | { readonly kind: "linear"; readonly factor: number }
  /** GTE: the base grows by the factor, and all frequencies shrink by factor^(2/headDim). */
  | { readonly kind: "ntk"; readonly factor: number }
  | Llama3Scaling
  | YarnScaling;

/** Llama 3.1: low frequencies are divided by the factor, high ones stay, those between are blended. */
interface Llama3Scaling {
  readonly kind: "llama3";
  readonly factor: number;
  /** Wavelengths over originalPositions / lowFrequencyFactor are low frequencies. */
  readonly lowFrequencyFactor: number;
  /** Wavelengths under originalPositions / highFrequencyFactor are high frequencies. */
  readonly highFrequencyFactor: number;
  /** Longest text of the first training, in tokens. */
  readonly originalPositions: number;
}

/** YaRN (Peng et al. 2023): as llama3 with a ramp over the pairs, and a factor on queries and keys. */
interface YarnScaling {
  readonly kind: "yarn";
  readonly factor: number;
  /** Pairs that turn more often than this in `originalPositions` stay. */
  readonly betaFast: number;
  /** Pairs that turn less often than this in `originalPositions` are divided by the factor. */
  readonly betaSlow: number;
  /** The ramp begins and ends at whole pairs. */
  readonly truncate: boolean;
  readonly originalPositions: number;
  /** On queries and keys. */
  readonly attentionFactor: number;
  /** Llama 4: queries grow by this much per unit of ln(1 + ⌊position / originalPositions⌋); absent: not at all. */
  readonly queryGrowth?: number | undefined;
}

export function scaledRope(headDim: number, theta: number, scaling: RopeScaling): Rope {
  const frequencies = inverseFrequencies(headDim, theta);
  switch (scaling.kind) {
    case "default":
      return { frequencies };
    case "linear":
      return { frequencies: frequencies.map((frequency) => frequency / scaling.factor) };
    case "ntk": {
      const shrink = scaling.factor ** (-2 / headDim);
      const spread = inverseFrequencies(headDim, theta * scaling.factor);
      return { frequencies: spread.map((frequency) => frequency * shrink) };
    }
    case "llama3":
      return { frequencies: llama3Frequencies(frequencies, scaling) };
    case "yarn":
      return {
        frequencies: yarnFrequencies(frequencies, theta, scaling),
        factor: scaling.attentionFactor,
        queryFactor: queryFactorOf(scaling),
      };
  }
}

/** The factor of the paper, equation 22, weighed by `mscale`; 1 where nothing is stretched. */
export function yarnMagnitude(factor: number, mscale = 1): number {
  return factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1;
}

function llama3Frequencies(frequencies: Float32Array, scaling: Llama3Scaling): Float32Array {
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalPositions } = scaling;
  return frequencies.map((frequency) => {
    const turns = (originalPositions * frequency) / (2 * Math.PI);
    const kept = Math.min(Math.max((turns - low) / (high - low), 0), 1);
    return blend(frequency, factor, kept);
  });
}

function yarnFrequencies(
  frequencies: Float32Array,
  theta: number,
  { factor, betaFast, betaSlow, truncate, originalPositions }: YarnScaling,
): Float32Array {
  const headDim = 2 * frequencies.length;
  /** The pair, in fractions, that turns this often in `originalPositions`. */
  const pairTurning = (turns: number) =>
    (headDim * Math.log(originalPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [fast, slow] = [pairTurning(betaFast), pairTurning(betaSlow)];
  const first = Math.max(truncate ? Math.floor(fast) : fast, 0);
  const last = Math.min(truncate ? Math.ceil(slow) : slow, headDim - 1);
  // A ramp of no width would divide by zero.
  const width = last === first ? 0.001 : last - first;
  return frequencies.map((frequency, pair) => {
    const stretched = Math.min(Math.max((pair - first) / width, 0), 1);
    return blend(frequency, factor, 1 - stretched);
  });
}

function queryFactorOf({
  queryGrowth,
  originalPositions,
}: YarnScaling): PositionFactor | undefined {
  if (queryGrowth === undefined) return undefined;
  return (position) => 1 + queryGrowth * Math.log(1 + Math.floor(position / originalPositions));
}

/** `kept` of 1 leaves the frequency, 0 divides it by the factor. */
function blend(frequency: number, factor: number, kept: number): number {
  return kept * frequency + ((1 - kept) * frequency) / factor;
}
