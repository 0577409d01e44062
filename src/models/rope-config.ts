import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";
import type { Rope } from "../nn/rope.ts";
import { type RopeScaling, scaledRope, yarnMagnitude } from "../nn/rope-scaling.ts";
import { parseConfig, rotaryFactor } from "./config.ts";
import type { LayerKind } from "./layer-kind.ts";

const positive = z.number().positive();

/** Of every kind. The objects are strict: an unknown key could change the numbers. */
const common = {
  type: z.string().nullish(),
  rope_theta: rotaryFactor.nullish(),
  partial_rotary_factor: z.literal(1).nullish(),
};

const kindName = z.looseObject({ type: z.string().nullish(), rope_type: z.string().nullish() });

const kinds = z.discriminatedUnion(
  "rope_type",
  [
    z.strictObject({ ...common, rope_type: z.literal("default") }),
    z.strictObject({ ...common, rope_type: z.literal("linear"), factor: rotaryFactor }),
    z.strictObject({
      ...common,
      rope_type: z.literal("llama3"),
      factor: rotaryFactor,
      low_freq_factor: positive,
      high_freq_factor: positive,
      original_max_position_embeddings: positive.nullish(),
    }),
    z.strictObject({
      ...common,
      rope_type: z.literal("yarn"),
      factor: rotaryFactor.nullish(),
      original_max_position_embeddings: positive.nullish(),
      max_position_embeddings: positive.nullish(), // of the whole model, repeated
      attention_factor: positive.nullish(),
      beta_fast: positive.nullish(),
      beta_slow: positive.nullish(),
      mscale: z.number().nullish(),
      mscale_all_dim: z.number().nullish(),
      truncate: z.boolean().nullish(),
      llama_4_scaling_beta: z.number().nullish(),
    }),
  ],
  {
    error: ({ code, input }) =>
      code === "invalid_union"
        ? `${nameOfKind(input)} is not supported (known: default, linear, llama3, yarn)`
        : undefined,
  },
);

function nameOfKind(settings: unknown): string {
  return JSON.stringify(kindName.safeParse(settings).data?.rope_type);
}

/** `rope_scaling` of transformers 4 (`type`, later `rope_type`) or `rope_parameters` of 5. */
const ropeSettings = z.preprocess((settings) => {
  const { data } = kindName.safeParse(settings);
  return data ? { ...data, rope_type: data.rope_type ?? data.type ?? "default" } : settings;
}, kinds);

type RopeSettings = z.output<typeof ropeSettings>;

const ropeFile = z.looseObject({
  rope_theta: rotaryFactor.nullish(),
  partial_rotary_factor: z.literal(1).nullish(),
  rope_scaling: ropeSettings.nullish(),
  rope_parameters: ropeSettings.nullish(),
});

interface RopeContext {
  readonly headDim: number;
  /** Longest row of the model: what it was first trained with where the scaling does not say. */
  readonly positions: number;
  /** Where the file states none; absent: it must. */
  readonly defaultTheta?: number | undefined;
}

/** The one rotary embedding of config.json, in either spelling. Throws CheckpointError naming what is not supported. */
export function readRope(config: unknown, context: RopeContext): Rope {
  const { rope_theta, rope_scaling, rope_parameters } = parseConfig(ropeFile, config);
  const settings = rope_scaling ?? rope_parameters ?? { rope_type: "default" };
  const theta = rope_parameters?.rope_theta ?? rope_theta ?? undefined;
  return ropeOf(settings, { ...context, defaultTheta: theta ?? context.defaultTheta });
}

const layerRopesFile = z.looseObject({
  rope_theta: rotaryFactor.default(1_000_000),
  rope_local_base_freq: rotaryFactor.default(10_000),
  partial_rotary_factor: z.literal(1).nullish(),
  rope_scaling: ropeSettings.nullish(),
  rope_parameters: z
    .strictObject({
      full_attention: ropeSettings.nullish(),
      sliding_attention: ropeSettings.nullish(),
    })
    .nullish(),
});

interface LayerRopeContext {
  /** Of each kind of layer. */
  readonly headDims: Readonly<Record<LayerKind, number>>;
  /** As in `RopeContext`. */
  readonly positions: number;
  /** Where the settings stand, for errors. */
  readonly file?: string | undefined;
}

/**
 * The rotary embeddings of Gemma, by the kind of layer, in either spelling: `rope_scaling` of transformers 4 is that of
 * the layers with full attention. Throws CheckpointError naming what is not supported.
 */
export function readLayerRopes(
  config: unknown,
  { headDims, positions, file = "config.json" }: LayerRopeContext,
): Record<LayerKind, Rope> {
  const stated = parseConfig(layerRopesFile, config, file);
  const { rope_scaling, rope_parameters } = stated;
  const plain: RopeSettings = { rope_type: "default" };
  return {
    full_attention: ropeOf(rope_scaling ?? rope_parameters?.full_attention ?? plain, {
      ...{ headDim: headDims.full_attention, positions },
      defaultTheta: rope_parameters?.full_attention?.rope_theta ?? stated.rope_theta,
    }),
    sliding_attention: ropeOf(rope_parameters?.sliding_attention ?? plain, {
      ...{ headDim: headDims.sliding_attention, positions },
      defaultTheta: stated.rope_local_base_freq,
    }),
  };
}

/** Throws CheckpointError where no theta is stated. */
function ropeOf(settings: RopeSettings, context: RopeContext): Rope {
  const theta = settings.rope_theta ?? context.defaultTheta;
  if (theta === undefined) throw new CheckpointError("config.json: rope_theta: is missing");
  return scaledRope(context.headDim, theta, scalingOf(settings, context.positions));
}

function scalingOf(settings: RopeSettings, positions: number): RopeScaling {
  switch (settings.rope_type) {
    case "default":
      return { kind: "default" };
    case "linear":
      return { kind: "linear", factor: settings.factor };
    case "llama3":
      return {
        kind: "llama3",
        factor: settings.factor,
        lowFrequencyFactor: settings.low_freq_factor,
        highFrequencyFactor: settings.high_freq_factor,
        originalPositions: settings.original_max_position_embeddings ?? positions,
      };
    case "yarn": {
      const originalPositions = settings.original_max_position_embeddings ?? positions;
      const factor = settings.factor ?? positions / originalPositions;
      return {
        kind: "yarn",
        factor,
        originalPositions,
        betaFast: settings.beta_fast ?? 32,
        betaSlow: settings.beta_slow ?? 1,
        truncate: settings.truncate ?? true,
        attentionFactor: settings.attention_factor ?? attentionFactorOf(settings, factor),
        queryGrowth: settings.llama_4_scaling_beta ?? undefined,
      };
    }
  }
}

type YarnSettings = Extract<RopeSettings, { rope_type: "yarn" }>;

function attentionFactorOf({ mscale, mscale_all_dim: all }: YarnSettings, factor: number): number {
  return mscale && all
    ? yarnMagnitude(factor, mscale) / yarnMagnitude(factor, all)
    : yarnMagnitude(factor);
}
